# requires: ctranslate2 transformers
import ctranslate2
from ctranslate2.converters import TransformersConverter

print(ctranslate2.__version__, TransformersConverter("saved"))
