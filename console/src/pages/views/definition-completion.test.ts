import { expect, test } from 'vitest'
import type { DefinitionFormat } from '../../api/views.ts'
import { completeDefinition } from './definition-completion.ts'

const context = {
  paths: [
    { path: '$.items', kind: 'list' },
    { path: '$.items[*].sku', kind: 'string' },
    { path: '$.items[*].tags', kind: 'list' },
    { path: '$.items[*].tags[*].name', kind: 'string' },
  ],
  columns: ['amount'],
  secrets: ['email_key'],
}

function complete(before: string, format: DefinitionFormat = 'yaml', after = '') {
  const result = completeDefinition(before, after, { ...context, format })
  return result && { ...result, typed: before.slice(result.from), labels: result.options.map(({ label }) => label) }
}

test.each<[string, string, DefinitionFormat, string, string]>([
  ['a key of the definition', 'col', 'yaml', 'col', 'columns'],
  ['a key of a column', 'columns:\n  - na', 'yaml', 'na', 'name'],
  ['a key of a column on a line of its own', 'columns:\n  - name: a\n    ty', 'yaml', 'ty', 'type'],
  ['a key in a flow map', 'columns:\n  - { name: a, ', 'yaml', '', 'path'],
  ['a key after a type with a comma', 'columns:\n  - { type: DECIMAL(12,2), pa', 'yaml', 'pa', 'path'],
  ['a key of a filter', 'columns:\n  - { name: a }\nfilters:\n  - con', 'yaml', 'con', 'condition'],
  ['a key of JSON', '{ "columns": [{ "na', 'json', '"na', '"name"'],
  ['a top key of JSON', '{ "columns": [{ "name": "a" }], "f', 'json', '"f', '"filters"'],
  ['a type', 'columns:\n  - type: BIG', 'yaml', 'BIG', 'BIGINT'],
  ['a type of JSON', '{ "columns": [{ "type": "BIG', 'json', 'BIG', 'BIGINT'],
  ['a path of the samples', 'columns:\n  - path: $.it', 'yaml', '$.it', '$.items[*].sku'],
  ['an array', "expand: '$.it", 'yaml', '$.it', '$.items[*]'],
  ['an array in an array', 'expand: ', 'yaml', '', '$.items[*].tags[*]'],
  ['a path of an element', "expand: '$.items[*]'\ncolumns:\n  - path: $item", 'yaml', '$item', '$item.sku'],
  ['a path of JSON', '{ "expand": "$.items[*].tags[*]",\n  "columns": [{ "path": "$pa', 'json', '$pa', '$parent.sku'],
  ['a path of the envelope', 'columns:\n  - path: $$', 'yaml', '$$', '$$.topic'],
  ['a column in a value', 'columns:\n  - name: b\n    value: round(am', 'yaml', 'am', 'amount'],
  ['a field in a value', 'columns:\n  - name: b\n    value: lower($$.to', 'yaml', '$$.to', '$$.topic'],
  ['a secret', "columns:\n  - value: hmac_sha256('em", 'yaml', 'em', 'email_key'],
  ['a secret in a flow map', 'columns:\n  - { name: h, type: VARCHAR, value: "hmac_sha256(\'', 'yaml', '', 'email_key'],
  ['a path in a flow map', 'columns:\n  - { name: x, type: VARCHAR, path: $.it', 'yaml', '$.it', '$.items[*].sku'],
  ['a format in a flow map', 'columns:\n  - { type: TIMESTAMP, path: $.at, format: ', 'yaml', '', 'epoch_ms'],
  ['a field in a flow map', 'columns:\n  - { type: VARCHAR, value: "lower($$.', 'yaml', '$$.', '$$.address'],
  ['a column in JSON of one line', '{ "columns": [{ "type": "DOUBLE", "value": "abs(am', 'json', 'am', 'amount'],
  ['a secret in quotes of YAML', "columns:\n  - value: 'hmac_sha256(''", 'yaml', '', 'email_key'],
  ['a secret of JSON', '{ "columns": [{ "value": "hmac_sha256( \'e', 'json', 'e', 'email_key'],
  ['an element without samples', "expand: '$.orders[*].lines[*]'\ncolumns:\n  - path: $", 'yaml', '$', '$parent'],
  ['a key of an event', 'columns:\n  - name: a\ndedupe_by: [am', 'yaml', 'am', 'amount'],
  ['a column in a list of lines', 'columns:\n  - name: a\nsort_by:\n  - x\n  - am', 'yaml', 'am', 'amount'],
  ['a format of times', 'columns:\n  - format: ep', 'yaml', 'ep', 'epoch_ms'],
  ['a column in a condition', 'filters:\n  - condition: length(x) > 2 AND am', 'yaml', 'am', 'amount'],
])('completes %s', (_, before, format, typed, label) => {
  const result = complete(before, format)
  expect(result?.typed).toBe(typed)
  expect(result?.labels).toContain(label)
})

test('a value that YAML would misread is quoted, unless a quote is open', () => {
  const applied = (before: string) => complete(before)?.options.find(({ label }) => label === '$.items[*].sku')?.apply
  expect(applied('columns:\n  - path: ')).toBe("'$.items[*].sku'")
  expect(applied("columns:\n  - path: '")).toBe('$.items[*].sku')
})

test('a key of JSON replaces the quote that the editor closed', () => {
  const before = '{ "columns": [{ "na'
  expect(complete(before, 'json', '" }]')?.to).toBe(before.length + 1)
})

test('nothing is offered where people write freely', () => {
  expect(complete('columns:\n  - name: ab')).toBeNull()
  expect(complete('filters:\n  - condition: amount > ')).toBeNull()
})
