"""Its examples/train_enwik8: an AutoregressiveWrapper, with accumulation, clipping, and a validation."""
# package: x-transformers==2.31.10
# expects: nothing
# trains: 1

import torch
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

layers = Decoder(dim=16, depth=2, heads=2, attn_dim_head=8, rotary_pos_emb=True)
model = AutoregressiveWrapper(TransformerWrapper(num_tokens=256, max_seq_len=32, attn_layers=layers))
optim = torch.optim.Adam(model.parameters(), lr=1e-4)

for i in range(10):
    model.train()
    for _ in range(4):
        loss = model(torch.randint(0, 256, (4, 33)))
        (loss / 4).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optim.step()
    optim.zero_grad()
    if i % 5 == 0:
        model.eval()
        with torch.no_grad():
            loss = model(torch.randint(0, 256, (4, 33)))
