import { expect, test } from 'vitest'
import { addColumns, convertDefinition, hasComments, printDefinition, readDefinition } from './definition-text.ts'

const definition = {
  columns: [
    { name: 'id', type: 'BIGINT', path: '$.id', required: true },
    { name: 'shas', type: 'VARCHAR[]', path: '$.commits[*].sha' },
  ],
  filters: [{ condition: 'id > 0 AND shas IS NOT NULL AND id NOT IN (1000000, 2000000, 3000000, 4000000, 5000000)' }],
}

test.each(['yaml', 'json'] as const)('a definition printed as %s reads back as it was', (format) => {
  expect(readDefinition(printDefinition(definition, format), format)).toEqual(definition)
})

test('YAML has a line per column, and folds no line', () => {
  const lines = printDefinition(definition, 'yaml').trimEnd().split('\n')
  expect(lines).toHaveLength(5)
  expect(lines[1]).toBe('  - { name: id, type: BIGINT, path: $.id, required: true }')
})

test('columns are added at the end, and comments stay', () => {
  const text = '# what we sell\ncolumns:\n  - name: id # the key\n    type: BIGINT\n    path: $.id\n'
  const added = addColumns(text, 'yaml', [{ name: 'at', type: 'TIMESTAMP', path: '$.at' }])
  expect(added).toBe(`${text}  - name: at\n    type: TIMESTAMP\n    path: $.at\n`)
  expect(addColumns(printDefinition({ columns: [] }, 'json'), 'json', definition.columns)).toContain('"path": "$.commits[*].sha"')
  expect(readDefinition(addColumns('', 'yaml', definition.columns) ?? '', 'yaml')?.columns).toEqual(definition.columns)
})

test('a text that was pasted in the other language can be taken for what it is', () => {
  const yaml = printDefinition(definition, 'yaml')
  expect(convertDefinition(yaml, 'json', 'yaml')).toBe(yaml)
})

test('a text that is half written gives nothing, and is never replaced', () => {
  for (const text of ['columns: [', 'columns', '[1]', 'columns: {}', 'columns: [1]']) {
    expect(readDefinition(text, 'yaml')).toBeUndefined()
    expect(convertDefinition(text, 'yaml', 'json')).toBeUndefined()
  }
  expect(addColumns('columns: [', 'yaml', definition.columns)).toBeUndefined()
  expect(addColumns('{', 'json', definition.columns)).toBeUndefined()
})

test.each([
  ['columns: [] # all', true],
  ['# first\ncolumns: []', true],
  ['columns:\n  - { name: a, # why\n      type: JSON }', true],
  ["columns:\n  - { name: 'a # b', path: '$.\"#\"' }", false],
  ['description: a#b', false],
  ['description: |\n  # not a comment\n', false],
  ['description: >-\n  text\n  # neither\ncolumns: []', false],
])('%j has comments: %s', (yaml, has) => {
  expect(hasComments(yaml)).toBe(has)
})
