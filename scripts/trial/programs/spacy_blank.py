# requires: spacy
import spacy

print([token.text for token in spacy.blank("en")("a b")])
