/* SPDX-License-Identifier: BSD-3-Clause */
/* Patterns of names: `*` any text, also none; `?` one byte; everything else itself. */
#ifndef MT_GLOB_H
#define MT_GLOB_H

#include "model.h"

/* True if all of text matches. Time at most pattern.len * text.len. */
bool mt_glob(struct mt_str pattern, struct mt_str text);

#endif
