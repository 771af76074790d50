# requires: gradio transformers
import gradio
from transformers import TextIteratorStreamer

demo = gradio.ChatInterface(lambda message, history: message)
print(demo, TextIteratorStreamer, demo.get_api_info())
