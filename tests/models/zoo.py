"""The models: one function each, which makes the model and its inputs by hand (nothing is downloaded)."""

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
import transformers
from transformers import PretrainedConfig, PreTrainedModel

VOCAB = 256
WIDTH = 64
BATCH = 2
LENGTH = 12
PROMPT = 6

# Special tokens that random weights should not stop at; wider weights than usual keep logits apart.
TEXT = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None, "initializer_range": 0.1}
# The decoder layout that llama and its relatives share.
DECODER = {
    "vocab_size": VOCAB,
    "hidden_size": WIDTH,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    **TEXT,
}


@dataclasses.dataclass
class Case:
    """A model in evaluation mode, what its forward takes (with labels), and what `generate` starts from."""

    model: PreTrainedModel
    inputs: dict[str, Any]
    prompt: dict[str, Any] | None = None


def _tokens(*shape: int) -> torch.Tensor:
    return torch.randint(3, VOCAB, shape)


def _causal(model_class: type[PreTrainedModel], config: PretrainedConfig) -> Case:
    tokens = _tokens(BATCH, LENGTH)
    labels = tokens.clone()
    labels[0, :3] = -100
    return Case(
        model_class(config),
        {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "labels": labels},
        {"input_ids": tokens[:, :PROMPT], "attention_mask": torch.ones_like(tokens[:, :PROMPT])},
    )


def gpt2() -> Case:
    config = transformers.GPT2Config(
        vocab_size=VOCAB, n_embd=WIDTH, n_layer=2, n_head=4, n_positions=64,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, **TEXT,
    )  # fmt: skip
    return _causal(transformers.GPT2LMHeadModel, config)


def llama() -> Case:
    return _causal(transformers.LlamaForCausalLM, transformers.LlamaConfig(**DECODER, tie_word_embeddings=True))


def qwen3() -> Case:
    return _causal(transformers.Qwen3ForCausalLM, transformers.Qwen3Config(**DECODER, head_dim=16))


def qwen3_moe() -> Case:
    config = transformers.Qwen3MoeConfig(
        **DECODER, head_dim=16, moe_intermediate_size=64, num_experts=4, num_experts_per_tok=2,
        norm_topk_prob=True, output_router_logits=True,
    )  # fmt: skip
    return _causal(transformers.Qwen3MoeForCausalLM, config)


def gemma3_text() -> Case:
    config = transformers.Gemma3TextConfig(
        **DECODER, head_dim=16, query_pre_attn_scalar=16, sliding_window=8,
        layer_types=["sliding_attention", "full_attention"],
    )  # fmt: skip
    return _causal(transformers.Gemma3ForCausalLM, config)


def gpt_oss() -> Case:
    config = transformers.GptOssConfig(
        **DECODER, head_dim=16, num_local_experts=4, num_experts_per_tok=2, sliding_window=8,
        layer_types=["sliding_attention", "full_attention"],
    )  # fmt: skip
    return _causal(transformers.GptOssForCausalLM, config)


def muse_glimmer() -> Case:
    image = VOCAB - 1
    text = transformers.MuseGlimmerTextConfig(
        **DECODER, head_dim=16, sliding_window=8, layer_types=["sliding_attention", "full_attention"]
    )
    vision = transformers.MuseGlimmerVisionConfig(
        patch_size=4, pos_emb_height=4, pos_emb_width=4, num_attention_heads=4, num_hidden_layers=2,
        hidden_size=WIDTH, intermediate_size=128, max_position_embeddings=16,
        layer_types=["window_attention", "full_attention"],
    )  # fmt: skip
    config = transformers.MuseGlimmerConfig(
        text_config=text, vision_config=vision, image_token_id=image, video_token_id=VOCAB - 2,
        out_hidden_size=WIDTH * 4, projector_hidden_size=WIDTH,
    )  # fmt: skip
    grid = torch.tensor([[1, 4, 4], [1, 4, 4]])
    tokens = torch.randint(3, VOCAB - 2, (BATCH, LENGTH))
    tokens[:, 1:5] = image
    extra = {
        "pixel_values": torch.randn(int(grid.prod(-1).sum()), 3 * vision.patch_temporal * vision.patch_size**2),
        "image_grid_thw": grid,
    }
    labels = tokens.masked_fill(tokens == image, -100)
    return Case(
        transformers.MuseGlimmerForConditionalGeneration(config),
        {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "labels": labels, **extra},
        {"input_ids": tokens[:, :PROMPT], "attention_mask": torch.ones_like(tokens[:, :PROMPT]), **extra},
    )


def deepseek_v3() -> Case:
    config = transformers.DeepseekV3Config(
        **{**DECODER, "num_key_value_heads": 4}, moe_intermediate_size=32, n_routed_experts=8, n_group=2, topk_group=1,
        num_experts_per_tok=2, first_k_dense_replace=1, kv_lora_rank=16, q_lora_rank=32, qk_rope_head_dim=8,
        qk_nope_head_dim=16, v_head_dim=16,
    )  # fmt: skip
    return _causal(transformers.DeepseekV3ForCausalLM, config)


def bert() -> Case:
    config = transformers.BertConfig(
        vocab_size=VOCAB, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
        max_position_embeddings=64, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, initializer_range=0.1,
    )  # fmt: skip
    tokens = _tokens(BATCH, LENGTH)
    mask = torch.ones_like(tokens)
    mask[1, -4:] = 0
    labels = torch.where(torch.rand(BATCH, LENGTH) < 0.3, tokens, -100)
    labels[0, 1] = tokens[0, 1]
    return Case(transformers.BertForMaskedLM(config), {"input_ids": tokens, "attention_mask": mask, "labels": labels})


def t5() -> Case:
    config = transformers.T5Config(
        vocab_size=VOCAB, d_model=WIDTH, d_kv=16, d_ff=128, num_layers=2, num_heads=4, dropout_rate=0.0,
        decoder_start_token_id=0, pad_token_id=0, eos_token_id=None, initializer_factor=1.0,
        relative_attention_num_buckets=8, relative_attention_max_distance=16,
    )  # fmt: skip
    tokens = _tokens(BATCH, LENGTH)
    mask = torch.ones_like(tokens)
    mask[1, -4:] = 0
    source = {"input_ids": tokens, "attention_mask": mask}
    return Case(transformers.T5ForConditionalGeneration(config), {**source, "labels": _tokens(BATCH, PROMPT)}, source)


def vit() -> Case:
    config = transformers.ViTConfig(
        image_size=16, patch_size=4, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=128, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=10,
        initializer_range=0.1,
    )  # fmt: skip
    return Case(
        transformers.ViTForImageClassification(config),
        {"pixel_values": torch.randn(BATCH, 3, 16, 16), "labels": torch.tensor([3, 7])},
    )


def resnet() -> Case:
    config = transformers.ResNetConfig(
        embedding_size=16, hidden_sizes=[32, WIDTH], depths=[1, 2], layer_type="bottleneck", num_labels=10
    )
    return Case(
        transformers.ResNetForImageClassification(config),
        {"pixel_values": torch.randn(4, 3, 32, 32), "labels": torch.tensor([3, 7, 0, 9])},
    )


def whisper() -> Case:
    config = transformers.WhisperConfig(
        vocab_size=VOCAB, num_mel_bins=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, d_model=WIDTH, init_std=0.1,
        max_source_positions=32, max_target_positions=64, decoder_start_token_id=1, bos_token_id=1, pad_token_id=0,
        eos_token_id=2, begin_suppress_tokens=None,
    )  # fmt: skip
    features = {"input_features": torch.randn(BATCH, 16, 64)}
    return Case(
        transformers.WhisperForConditionalGeneration(config),
        {**features, "labels": _tokens(BATCH, PROMPT)},
        {**features, "eos_token_id": None},
    )


def mamba2() -> Case:
    config = transformers.Mamba2Config(
        vocab_size=VOCAB, hidden_size=WIDTH, num_hidden_layers=2, num_heads=8, head_dim=16, state_size=16, n_groups=2,
        chunk_size=8, **TEXT,
    )  # fmt: skip
    return _causal(transformers.Mamba2ForCausalLM, config)


def llava() -> Case:
    image = VOCAB - 1
    vision = transformers.CLIPVisionConfig(
        hidden_size=WIDTH, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, image_size=16,
        patch_size=8, initializer_factor=2.0,
    )  # fmt: skip
    config = transformers.LlavaConfig(
        vision_config=vision, text_config=transformers.LlamaConfig(**DECODER), image_token_index=image,
        image_seq_length=4, vision_feature_layer=-2,
    )  # fmt: skip
    tokens = torch.randint(3, VOCAB - 1, (BATCH, LENGTH))
    tokens[:, 1:5] = image
    pixels = {"pixel_values": torch.randn(BATCH, 3, 16, 16)}
    labels = tokens.masked_fill(tokens == image, -100)
    return Case(
        transformers.LlavaForConditionalGeneration(config),
        {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "labels": labels, **pixels},
        {"input_ids": tokens[:, :PROMPT], "attention_mask": torch.ones_like(tokens[:, :PROMPT]), **pixels},
    )


MODELS: dict[str, Callable[[], Case]] = {
    make.__name__: make
    for make in (
        gpt2, llama, qwen3, qwen3_moe, gemma3_text, gpt_oss, muse_glimmer, deepseek_v3, bert, t5, vit, resnet, whisper,
        mamba2, llava,
    )
}  # fmt: skip


def make(name: str) -> Case:
    """The case of `name`, always with the same weights and inputs. Leaves PyTorch's seed set."""
    torch.manual_seed(0)
    case = MODELS[name]()
    case.model.eval()
    return case
