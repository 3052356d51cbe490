// Pictures in another size.
#pragma once

#include "superstep/file/pictures/picture.h"

namespace superstep::data {

// Of `width` x `height` pixels: a triangle as wide as the pixel that it makes, where that is larger than
// those of the picture (bilinear with antialiasing), across and then down, each rounded to bytes. Where both
// sides change alike these are the bits of Pillow's resize(..., BILINEAR) and of torchvision's Resize of its
// pictures; else Pillow may go down first, and a byte differ by one.
Picture resized(const Picture& picture, int width, int height);

// Of `width` x `height` pixels: resized by one factor so that it covers them, the middle of what is longer
// taken. Of a square that is the shorter side resized to it.
Picture covering(const Picture& picture, int width, int height);

// The same, of which a pixel is what lies in its middle: for labels, between which there is nothing.
Picture covering_nearest(const Picture& picture, int width, int height);

}  // namespace superstep::data
