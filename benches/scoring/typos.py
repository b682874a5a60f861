"""Typing errors in labels: letters swapped, doubled, missing, added or replaced, as people and squatters make them."""
KEYS = ["qwertyuiop", "asdfghjkl", "zxcvbnm"]
VOWELS = "aeiou"


def neighbours(letter):
    """Returns the letters next to one on an English keyboard."""
    row, at = next((row, keys.index(letter)) for row, keys in enumerate(KEYS) if letter in keys)
    around = [(row, at - 1), (row, at + 1), (row - 1, at), (row - 1, at + 1), (row + 1, at - 1), (row + 1, at)]
    return [KEYS[row][at] for row, at in around if 0 <= row < len(KEYS) and 0 <= at < len(KEYS[row])]


def typos(label):
    """Returns the misspellings of a label of a to z by kind, each in one kind only."""
    places = range(len(label))
    kinds = {
        "swapped": [label[:at] + label[at + 1] + label[at] + label[at + 2 :] for at in places[:-1]],
        "doubled": [label[:at] + label[at] + label[at:] for at in places],
        "missing": [label[:at] + label[at + 1 :] for at in places],
        "neighbour": [label[:at] + key + label[at + 1 :] for at in places for key in neighbours(label[at])],
        "vowel": [label[:at] + key + label[at + 1 :] for at in places[1:] if label[at] in VOWELS for key in VOWELS],
        "inserted": [label[:at] + key + label[at:] for at in places[1:] for key in neighbours(label[at])],
        "added": [label + key for key in "aeinsx"],
    }
    seen = {label}
    for kind, words in kinds.items():
        kinds[kind] = [word for word in dict.fromkeys(words) if word not in seen]
        seen.update(words)
    return kinds
