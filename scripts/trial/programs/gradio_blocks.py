# requires: gradio
import gradio

with gradio.Blocks() as demo:
    box = gradio.Textbox()
    gradio.Button().click(str.upper, box, box)
demo.launch(prevent_thread_lock=True, quiet=True)
demo.close()
