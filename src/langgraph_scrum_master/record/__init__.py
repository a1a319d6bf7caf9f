"""Result → disk."""
