"""Result → disk, and snapshots → disk and back."""
