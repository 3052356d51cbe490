"""Writes tokenizers of every kind that is read, with what `tokenizers` and `sentencepiece` make of 400 prompts: test_tokenizer_oracles.cpp.

    python3 make_tokenizers.py FOLDER      NAME.json and NAME.rows.json there; sp.json has the vocabulary of sentencepiece
"""
import json
import pathlib
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

FOLDER = pathlib.Path(sys.argv[1])
LINES = ["The beam leaves the ring and meets the crystal.", "The crystal turns; 12 peaks are seen, then 345 more.",
         "It's the detector's turn: we've counted them all.", "naïve café — 東京 Ωμέγα Привет мир 한국어 हिन्दी"] * 4
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
PARTS = ["the", " crystal", " ", "  ", "\t", "\n", "\r\n", " 12", "345", "'s", "We'VE", ".", ",", ";", "!", "é", "e\u0301", "\u0301", "İ", "ß",
         "ﬁ", "½", "Ⅷ", "²", "東京", "🙂", "👩‍🔬", "\u00a0", "\u200b", "\u200d", "\u3000", "\u2028", "\u0085", "\ufeff", "\u00ad", "▁", "_", "-", "—", "$5^2",
         "{a}", "한국어", "हिन्दी", "العربية", "ไทย", "Σίσυφος", "Ω", "\u1e9e", "\x07", "\x00", "𝒳", "\U000e0001", "Ⓐ", "٣", "〆", "ǅ", "<s>", "</s>", "<unk>",
         "[CLS]", "[MASK]", "<tool>", "<left>", "<right>", "<word>", "xy", "COVID", "Beam", "token", "s", "A", "0", "<0x41>", "##ing", "'", "\""]


def prompts():
    draw = random.Random(7)
    fixed = ["", " ", "  a", " a", "a ", "a  b", "\n", "▁a", " ▁a", "</s>", " </s> a", "a</s>", "a </s>b", "<s><s>", "x <left> y", "x <right> y", "x<word>y",
             "x <word> y", "<word>", "é<word>", "<word>_", "covid COVID Covid", "<tool>  <tool>", "\u3000<left>\u00a0<right>\u2028z", "<left><right><left>",
             "\u200b<left>", "1<word>", "½<word>", "🙂<word>", "xyxy x y"]
    texts = fixed + ["".join(draw.choice(PARTS) for _ in range(draw.randrange(1, 14))) for _ in range(400 - len(fixed))]
    assert len(texts) == 400
    return texts


def plain(kind):
    """Learnt by characters with a sign for spaces; `kind` says where the sign comes from."""
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]
    learnt = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    learnt.normalizer = normalizers.Replace(" ", "▁")
    learnt.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    learnt.train_from_iterator(LINES, trainers.BpeTrainer(vocab_size=420, special_tokens=special, show_progress=False))
    as_json = json.loads(learnt.to_str())
    as_json["added_tokens"] = as_json["added_tokens"][:3]
    as_json["normalizer"] = as_json["pre_tokenizer"] = None
    if kind == "no_bytes":
        as_json["model"]["byte_fallback"] = False
    tokenizer = Tokenizer.from_str(json.dumps(as_json))
    strip = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(strip)
    if kind.startswith("metaspace"):
        scheme = kind.split("_")[1]
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=not kind.endswith("whole"))
        tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme)
    elif kind == "prepend_metaspace":
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    elif kind != "no_spaces":
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    else:
        tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer


def of_bytes(kind):
    tokenizer = Tokenizer(models.BPE(ignore_merges=kind == "llama3"))
    if kind == "llama3":
        split = pre_tokenizers.Split(Regex(LLAMA3), "isolated")
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=kind == "spaced")
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(LINES, trainers.BpeTrainer(vocab_size=400, special_tokens=["<s>", "</s>"], show_progress=False,
                                                             initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return tokenizer


def of_words(**form):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(**form)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(cleanup=form.get("lowercase", True))
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(LINES, trainers.WordPieceTrainer(vocab_size=400, special_tokens=special, show_progress=False))
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return tokenizer


def with_added(tokenizer):
    tokenizer.add_special_tokens([AddedToken("<left>", lstrip=True, special=True), AddedToken("<right>", rstrip=True, special=True)])
    tokenizer.add_special_tokens([AddedToken("<word>", single_word=True, special=True)])
    tokenizer.add_tokens([AddedToken("<tool>", normalized=False), AddedToken("COVID", single_word=True, normalized=False)])
    if not isinstance(tokenizer.model, models.WordPiece):
        tokenizer.add_tokens([AddedToken("xy", normalized=True, lstrip=True), AddedToken("token", normalized=True)])
    return tokenizer


def save(name, tokenizer):
    tokenizer.save(str(FOLDER / f"{name}.json"))
    rows = []
    for text in prompts():
        ids = tokenizer.encode(text).ids
        rows.append({"text": text, "ids": ids, "decoded": tokenizer.decode(ids)})
    (FOLDER / f"{name}.rows.json").write_text(json.dumps(rows))


def save_sentencepiece():
    import sentencepiece
    (FOLDER / "lines.txt").write_text("\n".join(LINES * 8))
    sentencepiece.SentencePieceTrainer.train(
        input=str(FOLDER / "lines.txt"), model_prefix=str(FOLDER / "sp"), vocab_size=420, model_type="bpe", byte_fallback=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, minloglevel=2, hard_vocab_limit=False)
    model = sentencepiece.SentencePieceProcessor(model_file=str(FOLDER / "sp.model"))
    kinds = [2 if model.is_unknown(i) else 3 if model.is_control(i) else 6 if model.is_byte(i) else 1 for i in range(len(model))]
    rows = [{"text": text, "ids": [1] + model.encode(text)} for text in prompts() if not any(mark in text for mark in ("<s>", "</s>", "<unk>", "\x00"))]
    (FOLDER / "sp.json").write_text(json.dumps({"tokens": [model.id_to_piece(i) for i in range(len(model))],
                                                "scores": [model.get_score(i) for i in range(len(model))], "kinds": kinds, "rows": rows}))


for kind in ("prepend", "no_bytes", "no_spaces", "prepend_metaspace", "metaspace_always", "metaspace_first", "metaspace_never", "metaspace_always_whole"):
    save(kind, plain(kind))
    save(kind + "_added", with_added(plain(kind)))
for kind in ("gpt2", "spaced", "llama3"):
    save(kind, of_bytes(kind))
    save(kind + "_added", with_added(of_bytes(kind)))
save("words", of_words())
save("words_added", with_added(of_words()))
save("words_cased", of_words(lowercase=False, strip_accents=False, clean_text=True))
save("words_raw", of_words(lowercase=True, strip_accents=False, clean_text=False, handle_chinese_chars=False))
save_sentencepiece()
