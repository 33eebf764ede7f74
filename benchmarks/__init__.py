"""What Playhead costs, each figure beside a floor that is measured in the same run. Nothing here fails on time."""
