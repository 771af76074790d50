# requires: fastapi uvicorn httpx pydantic transformers
import fastapi
from fastapi.testclient import TestClient
from pydantic import BaseModel
from transformers import AutoTokenizer

app = fastapi.FastAPI()


class Request(BaseModel):
    prompt: str


@app.post("/generate")
def generate(request: Request) -> dict[str, str]:
    return {"text": request.prompt}


print(TestClient(app).post("/generate", json={"prompt": "a"}).json(), AutoTokenizer)
