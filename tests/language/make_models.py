"""Writes the small models of tests/language/models, as Hugging Face's transformers saves them, with what transformers says of a text.

    python3 make_models.py FOLDER [bert|more]     needs torch, transformers, safetensors, tokenizers and gguf; "bert": that one alone;
                                                  "more": bert-pretraining and vit alone

Weights are random. A model is a folder: config.json, model.safetensors (or shards, or PyTorch's pickle), tokenizer.json with
expected_tokens.json (texts and what the tokenizers of Hugging Face make of them), expected.safetensors with `input_ids` and the `logits`
of transformers in f64. gguf.gguf is a Llama whose weights are packed as q8_0 and q4_0; the logits beside it are those of the unpacked
weights. bert answers questions: expected.safetensors has its `start` and `end` scores in f64. bert-pretraining has both heads of
pre-training: `logits` and `next_sentence`; vit classifies `pixels`. Tokenizers are learnt from a few lines.
"""
import json
import pathlib
import shutil
import sys

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (BertConfig, BertForPreTraining, BertForQuestionAnswering, DistilBertConfig, DistilBertModel, GPT2Config,
                          GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, ViTConfig, ViTForImageClassification)

FOLDER = pathlib.Path(sys.argv[1])
VOCABULARY = 384
LINES = ["The beam leaves the ring and meets the crystal.", "The crystal turns; 12 peaks are seen, then 345 more.",
         "It's the detector's turn: we've counted them all.", "Once upon a time there was a small model, and it went on."] * 4
TEXTS = ["Once upon a time", "the crystal's 12345 peaks\n\n  and   more", " The ring", "", "naïve café — 東京 🙂", "a\tb\r\nc  ",
         "</s> ends it <s>", "We'VE it's"]
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def of_bytes(kind):
    tokenizer = Tokenizer(models.BPE(ignore_merges=kind == "llama3"))
    if kind == "llama3":
        split = pre_tokenizers.Split(Regex(LLAMA3), "isolated")
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = ["<s>", "</s>"] if kind == "llama3" else ["<|endoftext|>"]
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(LINES, trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=special, show_progress=False,
                                                             initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    if kind == "llama3":
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return tokenizer


def of_characters():
    """As Llama 2 and Mistral have theirs: a sign for spaces, and bytes for what is no token."""
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]
    learnt = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    learnt.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    learnt.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    learnt.train_from_iterator(LINES, trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=special, show_progress=False))
    as_json = json.loads(learnt.to_str())
    as_json["pre_tokenizer"] = None
    as_json["added_tokens"] = as_json["added_tokens"][:3]
    tokenizer = Tokenizer.from_str(json.dumps(as_json))
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    return tokenizer


def save_tokenizer(folder, tokenizer):
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    rows = []
    for text in TEXTS:
        ids = tokenizer.encode(text).ids
        rows.append({"text": text, "ids": ids, "decoded": tokenizer.decode(ids)})
    (folder / "expected_tokens.json").write_text(json.dumps(rows, ensure_ascii=False, indent=1) + "\n")


def larger(model):
    """Weights of the usual size leave all logits near zero, where errors hide."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * (0.1 if parameter.ndim == 1 else 0.2))
    return model.eval()


def save_expected(folder, model):
    """Of the model as it was saved, read again: a cast to bf16 rounds its rotary frequencies, too."""
    if (folder / "config.json").exists():
        model = type(model).from_pretrained(folder, dtype=torch.float32).eval()
    ids = torch.arange(0, 2 * 12).reshape(2, 12) * 17 % VOCABULARY
    with torch.no_grad():
        said = model.double()(ids)
    said = said.logits if hasattr(said, "logits") else said.last_hidden_state @ model.embeddings.word_embeddings.weight.T
    save_file({"input_ids": ids, "logits": said.contiguous()}, folder / "expected.safetensors")


def save(name, model, tokenizer=None, sharded=False):
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder, max_shard_size="30KB" if sharded else "1GB")
    (folder / "generation_config.json").unlink(missing_ok=True)
    if name == "gpt2":  # one of them as PyTorch's own archive
        (folder / "model.safetensors").unlink()
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
    save_expected(folder, model)
    if tokenizer:
        save_tokenizer(folder, tokenizer)


def neighbours(weight, heads):
    """Rows of a head as GGUF has them: the two of a pair side by side."""
    rows = weight.shape[0] // heads
    return weight.reshape(heads, 2, rows // 2, -1).swapaxes(1, 2).reshape(weight.shape)


def save_gguf(name, model, tokenizer):
    import gguf
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config, weights = model.config, model.state_dict()
    out = gguf.GGUFWriter(folder / "model.gguf", "llama")
    out.add_block_count(config.num_hidden_layers)
    out.add_embedding_length(config.hidden_size)
    out.add_feed_forward_length(config.intermediate_size)
    out.add_context_length(config.max_position_embeddings)
    out.add_head_count(config.num_attention_heads)
    out.add_head_count_kv(config.num_key_value_heads)
    out.add_layer_norm_rms_eps(config.rms_norm_eps)
    out.add_rope_freq_base(10000.0)
    vocabulary = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    out.add_tokenizer_model("llama")
    out.add_token_list([text for text, _ in vocabulary])
    out.add_token_scores([float(-max(0, number - 258)) for _, number in vocabulary])
    out.add_token_types([2 if n == 0 else 3 if n < 3 else 6 if n < 259 else 1 for _, n in vocabulary])
    out.add_bos_token_id(1)
    out.add_eos_token_id(2)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for key, value in weights.items():
        array = value.float().numpy()
        if "q_proj" in key or "k_proj" in key:
            array = neighbours(array, config.num_attention_heads if "q_proj" in key else config.num_key_value_heads)
        kind = gguf.GGMLQuantizationType.F32 if array.ndim == 1 else (
            gguf.GGMLQuantizationType.Q4_0 if "mlp" in key else gguf.GGMLQuantizationType.F16 if "embed" in key else
            gguf.GGMLQuantizationType.Q8_0)
        packed = gguf.quants.quantize(np.ascontiguousarray(array), kind)
        out.add_tensor(names.get_name(key, (".weight",)), packed, raw_dtype=kind)
        unpacked = gguf.quants.dequantize(packed, kind).reshape(array.shape)
        if "q_proj" in key or "k_proj" in key:
            heads = config.num_attention_heads if "q_proj" in key else config.num_key_value_heads
            unpacked = unpacked.reshape(heads, unpacked.shape[0] // heads // 2, 2, -1).swapaxes(1, 2).reshape(array.shape)
        value.copy_(torch.from_numpy(unpacked.copy()))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    save_expected(folder, model)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    save_tokenizer(folder, tokenizer)
    (folder / "tokenizer.json").unlink()


WORDS = TEXTS + ["Detector's turn, don't wait!", "Ångström ÉCOLE İstanbul ﬁ ½ Σίσυφος", "the\u200bring\x07 \u00a0meets\ufffd it", "x" * 101,
                 "crystals re-turned 12345", "한국어 हिन्दी العربية", "$5^2 + {a}_b ¿qué?", "[SEP] after [MASK]"]


def of_words(lowercase):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(LINES + TEXTS, trainers.WordPieceTrainer(vocab_size=VOCABULARY, special_tokens=special,
                                                                          show_progress=False))
    as_json = json.loads(tokenizer.to_str())
    words = as_json["model"]["vocab"]  # BERT's own are filled up to the table's size, too
    words.update({f"[unused{number}]": number for number in range(len(words), VOCABULARY)})
    tokenizer = Tokenizer.from_str(json.dumps(as_json))
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
                                                             special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return tokenizer


def save_bert():
    """tokenizer.json; in cased/ the same kind as a vocab.txt with letters as they are."""
    global TEXTS
    folder = FOLDER / "bert"
    shutil.rmtree(folder, ignore_errors=True)
    torch.manual_seed(3)
    model = larger(BertForQuestionAnswering(BertConfig(vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
                                                       intermediate_size=64)))
    model.save_pretrained(folder)
    ids = torch.arange(0, 2 * 12).reshape(2, 12) * 17 % VOCABULARY
    types = (torch.arange(12) >= 5).long().repeat(2, 1)
    with torch.no_grad():
        said = model.double()(input_ids=ids, token_type_ids=types, attention_mask=torch.ones_like(ids))
    save_file({"input_ids": ids, "token_type_ids": types, "start": said.start_logits.contiguous(),
               "end": said.end_logits.contiguous()}, folder / "expected.safetensors")
    before, TEXTS = TEXTS, WORDS
    save_tokenizer(folder, of_words(True))
    cased = of_words(False)
    (folder / "cased").mkdir()
    save_tokenizer(folder / "cased", cased)
    (folder / "cased" / "tokenizer.json").unlink()
    lines = sorted(cased.get_vocab().items(), key=lambda item: item[1])
    (folder / "cased" / "vocab.txt").write_text("".join(text + "\n" for text, _ in lines))
    (folder / "cased" / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": False}) + "\n")
    TEXTS = before


def save_more():
    torch.manual_seed(4)
    sizes = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
    model = larger(BertForPreTraining(BertConfig(vocab_size=128, **sizes)))
    model.save_pretrained(FOLDER / "bert-pretraining")
    ids = torch.arange(0, 2 * 12).reshape(2, 12) * 17 % 128
    types = (torch.arange(12) >= 5).long().repeat(2, 1)
    with torch.no_grad():
        said = model.double()(input_ids=ids, token_type_ids=types, attention_mask=torch.ones_like(ids))
    save_file({"input_ids": ids, "token_type_ids": types, "logits": said.prediction_logits.contiguous(),
               "next_sentence": said.seq_relationship_logits.contiguous()}, FOLDER / "bert-pretraining" / "expected.safetensors")
    model = larger(ViTForImageClassification(ViTConfig(image_size=32, patch_size=16, num_labels=5, **sizes)))
    model.save_pretrained(FOLDER / "vit")
    pixels = torch.randn(2, 3, 32, 32, dtype=torch.float64).float()
    with torch.no_grad():
        logits = model.double()(pixels.double()).logits
    save_file({"pixels": pixels, "logits": logits.contiguous()}, FOLDER / "vit" / "expected.safetensors")


if sys.argv[2:] in (["bert"], ["more"]):
    save_bert() if sys.argv[2] == "bert" else save_more()
    sys.exit()
torch.manual_seed(1)
small = dict(vocab_size=VOCABULARY, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=64)
save("llama", larger(LlamaForCausalLM(LlamaConfig(**small))), of_characters(), sharded=True)
scaling = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
           "original_max_position_embeddings": 8, "rope_theta": 500.0}
save("llama3", larger(LlamaForCausalLM(LlamaConfig(**small, rope_parameters=scaling, tie_word_embeddings=True))).bfloat16(),
     of_bytes("llama3"))
save("gpt2", larger(GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, n_positions=64, n_embd=16, n_layer=2, n_head=4,
                                               bos_token_id=0, eos_token_id=0))), of_bytes("gpt2"))
save("distilbert", larger(DistilBertModel(DistilBertConfig(vocab_size=VOCABULARY, dim=16, hidden_dim=64, n_layers=2, n_heads=4))))
torch.manual_seed(2)
save_gguf("gguf", larger(LlamaForCausalLM(LlamaConfig(**(small | dict(hidden_size=32, intermediate_size=64))))), of_characters())
save_bert()
save_more()
