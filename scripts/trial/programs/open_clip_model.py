# requires: open-clip-torch
import open_clip

print(open_clip.list_pretrained()[:2], open_clip.get_tokenizer("ViT-B-32")(["a"]).shape)
