# requires: faster-whisper
from faster_whisper import WhisperModel, decode_audio

print(WhisperModel, decode_audio)
