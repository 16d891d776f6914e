"""The Trainer with a small BERT for two classes, as in the quick tour, with accumulation, clipping and a schedule."""
# package: transformers==5.23.0
# expects: nothing

import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
model = BertForSequenceClassification(BertConfig(vocab_size=50, num_labels=2, **sizes))
dataset = [{"input_ids": torch.randint(0, 50, (12,)), "labels": n % 2} for n in range(64)]
arguments = TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    per_device_train_batch_size=4,
    gradient_accumulation_steps=2,
    num_train_epochs=2,
    use_cpu=True,
    report_to="none",
    save_strategy="no",
)
Trainer(model=model, args=arguments, train_dataset=dataset).train()
