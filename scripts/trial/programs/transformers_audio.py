# requires: transformers librosa
import librosa
import numpy as np
from transformers import WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration

sound = librosa.resample(np.zeros(8000, dtype=np.float32), orig_sr=8000, target_sr=16000)
features = WhisperFeatureExtractor()(sound, sampling_rate=16000, return_tensors="pt")
config = WhisperConfig(d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2)
model = WhisperForConditionalGeneration(config)
print(model.generate(features.input_features, max_new_tokens=2))
