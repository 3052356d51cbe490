"""Networks for pictures and films as torchvision builds them, with random weights."""

from functools import partial

import torch
from torchvision import models


def picture(side, batch=1):
    return (torch.rand(batch, 3, side, side),)


def built(maker, side, **options):
    """A builder of torchvision's `maker` without its published weights."""
    def build():
        return maker(weights=None, **options), picture(side)
    return build


def without_auxiliary(maker, side):
    return built(partial(maker, init_weights=True), side, aux_logits=False)


def segmentation(maker):
    class First(torch.nn.Module):
        """The scores alone, of the dictionary that torchvision gives."""

        def __init__(self):
            super().__init__()
            self.net = maker(weights=None, weights_backbone=None, num_classes=5)

        def forward(self, x):
            return self.net(x)["out"]
    return lambda: (First(), picture(96))


def vit():
    net = models.VisionTransformer(image_size=96, patch_size=16, num_layers=4, num_heads=4, hidden_dim=192, mlp_dim=768)
    return net, picture(96)


def film():
    return models.video.r3d_18(weights=None), (torch.rand(1, 3, 4, 48, 48),)


TABLE = {
    "resnet18": built(models.resnet18, 128),
    "resnet50": built(models.resnet50, 96),
    "resnext50": built(models.resnext50_32x4d, 64),
    "mobilenet_v2": built(models.mobilenet_v2, 128),
    "mobilenet_v3_small": built(models.mobilenet_v3_small, 128),
    "efficientnet_b0": built(models.efficientnet_b0, 128),
    "efficientnet_v2_s": built(models.efficientnet_v2_s, 64),
    "densenet121": built(models.densenet121, 64),
    "squeezenet1_1": built(models.squeezenet1_1, 128),
    "shufflenet_v2": built(models.shufflenet_v2_x0_5, 128),
    "mnasnet0_5": built(models.mnasnet0_5, 128),
    "regnet_y_400mf": built(models.regnet_y_400mf, 128),
    "googlenet": without_auxiliary(models.googlenet, 96),
    "inception_v3": without_auxiliary(models.inception_v3, 80),
    "alexnet": built(models.alexnet, 128),
    "vgg11_bn": built(models.vgg11_bn, 64),
    "convnext_tiny": built(models.convnext_tiny, 64),
    "swin_t": built(models.swin_t, 64),
    "vit": vit,
    "deeplab_mobilenet": segmentation(models.segmentation.deeplabv3_mobilenet_v3_large),
    "lraspp": segmentation(models.segmentation.lraspp_mobilenet_v3_large),
    "r3d_18": film,
}
