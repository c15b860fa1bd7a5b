# SPDX-License-Identifier: Apache-2.0
"""Prints FAKE_EXPORT(name, number) for each call of rows.def: fake-exports.py ROWS.DEF"""
import re
import sys

names = []
for kind, name in re.findall(r'^(ROW|TWIN)\((\w+),', open(sys.argv[1], encoding='utf-8').read(), re.M):
    names.append(name)
    if kind == 'TWIN':
        names.append(name + '_ptsz')
for number, name in enumerate(names):
    print(f'FAKE_EXPORT({name}, {number})')
