/* SPDX-License-Identifier: BSD-3-Clause */
/* Only the last star ever needs to take more: what stood before it has matched as early as it could. */
#include "glob.h"

bool mt_glob(struct mt_str pattern, struct mt_str text)
{
	uint32_t p = 0, t = 0, star = UINT32_MAX, again = 0;

	while (t < text.len) {
		if (p < pattern.len && pattern.p[p] == '*') {
			star = p++;
			again = t;
		} else if (p < pattern.len && (pattern.p[p] == '?' || pattern.p[p] == text.p[t])) {
			p++;
			t++;
		} else if (star != UINT32_MAX) {
			p = star + 1;
			t = ++again;
		} else {
			return false;
		}
	}
	while (p < pattern.len && pattern.p[p] == '*')
		p++;
	return p == pattern.len;
}
