"""From ONNX models to typed graphs: reading, checking, and walking the nodes."""
