"""Finds speech in a recording with silero-vad: by its streaming model and by its whole-file one."""

import sys
import wave

import numpy as np
from shared import answer
from silero_vad import get_speech_timestamps, load_silero_vad
import torch

with wave.open(sys.argv[1]) as recording:
    assert recording.getframerate() == 16000
    samples = np.frombuffer(recording.readframes(recording.getnframes()), "<i2")
audio = torch.from_numpy(samples.astype(np.float32) / 32768)
model = load_silero_vad(onnx=True)
probabilities = [model(audio[at:at + 512], 16000).item()
                 for at in range(0, len(audio) - 512, 512)]
model.reset_states()
answer({"probabilities": probabilities,
        "speech": get_speech_timestamps(audio, model, sampling_rate=16000)})
