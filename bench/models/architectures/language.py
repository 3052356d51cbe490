"""Networks of the package transformers, built from small configurations: nothing is fetched."""

import torch
import transformers as t

TOKENS, WORDS = 32, 500
SMALL = dict(vocab_size=WORDS, hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=512)


class Picked(torch.nn.Module):
    """A network whose inputs are the arguments `names`, and whose first result is the output."""

    def __init__(self, net, names, fixed):
        super().__init__()
        self.net, self.names, self.fixed = net, names, fixed

    def forward(self, *values):
        return self.net(**dict(zip(self.names, values)), **self.fixed, return_dict=True)[0]


def words(count=TOKENS):
    return torch.randint(3, WORDS, (1, count))


def encoder(maker, **changes):
    """Words with a mask of which all but the last four are there."""
    def build():
        mask = torch.ones(1, TOKENS, dtype=torch.long)
        mask[:, -4:] = 0
        return Picked(maker(**changes), ["input_ids", "attention_mask"], {}), (words(), mask)
    return build


def decoder(maker, **changes):
    return lambda: (Picked(maker(**changes), ["input_ids"], {"use_cache": False}), (words(),))


def made(model, config, defaults):
    """Attention as formulas where a network has the choice; the one by one function is in `tokens.py`."""
    def build(**changes):
        options = dict(defaults, **changes)
        return model(config(**options))
    return build


def pictures(maker, side=64, **changes):
    return lambda: (Picked(maker(**changes), ["pixel_values"], {}), (torch.rand(1, 3, side, side),))


def sequence_to_sequence(maker):
    return lambda: (Picked(maker(), ["input_ids", "decoder_input_ids"], {"use_cache": False}), (words(), words(8)))


def sound():
    config = t.Wav2Vec2Config(vocab_size=32, hidden_size=96, num_hidden_layers=2, num_attention_heads=4, intermediate_size=192,
                              conv_dim=(32, 32, 32), conv_stride=(5, 2, 2), conv_kernel=(10, 3, 3), num_conv_pos_embeddings=16,
                              num_conv_pos_embedding_groups=4)
    return Picked(t.Wav2Vec2Model(config), ["input_values"], {}), (torch.randn(1, 1600),)


def speech():
    config = t.WhisperConfig(d_model=96, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=192, decoder_layers=1,
                             decoder_attention_heads=4, decoder_ffn_dim=96, max_source_positions=50, vocab_size=WORDS,
                             pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
    return Picked(t.WhisperModel(config).encoder, ["input_features"], {}), (torch.randn(1, 80, 100),)


def series():
    config = t.PatchTSTConfig(num_input_channels=4, context_length=64, patch_length=8, patch_stride=8, d_model=64,
                              num_attention_heads=4, ffn_dim=128, num_hidden_layers=2, prediction_length=16)
    return Picked(t.PatchTSTForPrediction(config), ["past_values"], {}), (torch.randn(1, 64, 4),)


LLAMA = dict(SMALL, num_key_value_heads=2, max_position_embeddings=64)
GPT2 = dict(vocab_size=WORDS, n_embd=128, n_layer=2, n_head=4, n_positions=64)
SEGFORMER = dict(depths=[1, 1, 1, 1], hidden_sizes=[16, 32, 64, 96], num_attention_heads=[1, 2, 4, 4], num_encoder_blocks=4)
TABLE = {
    "bert": encoder(made(t.BertModel, t.BertConfig, SMALL)),
    "bert_eager": encoder(made(t.BertModel, t.BertConfig, SMALL), attn_implementation="eager"),
    "distilbert": encoder(made(t.DistilBertModel, t.DistilBertConfig, dict(vocab_size=WORDS, dim=128, n_layers=2, n_heads=4, hidden_dim=512))),
    "roberta": encoder(made(t.RobertaModel, t.RobertaConfig, SMALL)),
    "albert": encoder(made(t.AlbertModel, t.AlbertConfig, dict(SMALL, embedding_size=64))),
    "electra": encoder(made(t.ElectraModel, t.ElectraConfig, dict(SMALL, embedding_size=64))),
    "deberta_v2": encoder(made(t.DebertaV2Model, t.DebertaV2Config, dict(SMALL, relative_attention=True, pos_att_type=["p2c", "c2p"],
                                                                          max_position_embeddings=64, position_buckets=16))),
    "modernbert": encoder(made(t.ModernBertModel, t.ModernBertConfig, dict(SMALL, pad_token_id=0, reference_compile=False))),
    "gpt2": decoder(made(t.GPT2Model, t.GPT2Config, GPT2)),
    "gpt2_eager": decoder(made(t.GPT2Model, t.GPT2Config, GPT2), attn_implementation="eager"),
    "gpt_neox": decoder(made(t.GPTNeoXModel, t.GPTNeoXConfig, dict(SMALL, max_position_embeddings=64))),
    "opt": decoder(made(t.OPTModel, t.OPTConfig, dict(vocab_size=WORDS, hidden_size=128, num_hidden_layers=2, num_attention_heads=4,
                                                      ffn_dim=512, max_position_embeddings=64, word_embed_proj_dim=128))),
    "llama": decoder(made(t.LlamaModel, t.LlamaConfig, LLAMA)),
    "llama_eager": decoder(made(t.LlamaModel, t.LlamaConfig, LLAMA), attn_implementation="eager"),
    "mistral": decoder(made(t.MistralModel, t.MistralConfig, dict(LLAMA, sliding_window=16))),
    "qwen2": decoder(made(t.Qwen2Model, t.Qwen2Config, LLAMA)),
    "gemma": decoder(made(t.GemmaModel, t.GemmaConfig, dict(LLAMA, head_dim=32))),
    "phi": decoder(made(t.PhiModel, t.PhiConfig, dict(SMALL, max_position_embeddings=64))),
    "mamba": decoder(made(t.MambaModel, t.MambaConfig, dict(vocab_size=WORDS, hidden_size=64, num_hidden_layers=1, state_size=8))),
    "t5": sequence_to_sequence(made(t.T5Model, t.T5Config, dict(vocab_size=WORDS, d_model=128, d_kv=32, d_ff=256, num_layers=2, num_heads=4))),
    "bart": sequence_to_sequence(made(t.BartModel, t.BartConfig, dict(
        vocab_size=WORDS, d_model=128, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=256, decoder_ffn_dim=256, max_position_embeddings=64))),
    "vit_transformers": pictures(made(t.ViTModel, t.ViTConfig, dict(SMALL, image_size=64, patch_size=8))),
    "swin_v2": pictures(made(t.Swinv2Model, t.Swinv2Config, dict(image_size=64, patch_size=4, embed_dim=32, depths=[1, 1], num_heads=[2, 4],
                                                                 window_size=4))),
    "convnext_v2": pictures(made(t.ConvNextV2Model, t.ConvNextV2Config, dict(hidden_sizes=[32, 64, 96, 128], depths=[1, 1, 2, 1]))),
    "segformer": pictures(made(t.SegformerModel, t.SegformerConfig, SEGFORMER)),
    "wav2vec2": sound,
    "whisper_encoder": speech,
    "patchtst": series,
}
