"""Terms of a glossary in translations, and their recall."""
