"""What happened: event types, writer, reader, recording, integrity, redaction."""
