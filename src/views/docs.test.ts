/** Runs the examples of docs/views.md: a view, records, and the resulting rows. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { Value } from '#duckdb/database.ts'
import { Definition, withListForm } from '#model/definition.ts'
import { parseType } from '#model/types/column-type.ts'
import { descriptors, type TypeDescriptor } from '#model/types/descriptors.ts'
import { jsonForm } from '#model/types/json-form.ts'
import { notAccepting } from '../../test/support/condition-record.ts'
import { decide, decideFiles } from '../../test/support/decide.ts'
import { parseDefinitionText } from './definition-text.ts'
import { allowedFunctions } from './filter-functions.ts'
import { ownFunctions } from './own-functions.ts'

const kinds = ['rows', 'files', 'dead', 'columns', 'unmapped'] as const
type Kind = (typeof kinds)[number]
/** The expected results of an example. */
type Example = {
  readonly line: number
  readonly view: string
  readonly records: string[]
  readonly shown: { [kind in Kind]?: unknown[] }
}

const docs = readFileSync(new URL('../../docs/views.md', import.meta.url), 'utf8')

function examplesOf(text: string): readonly Example[] {
  const examples: Example[] = []
  for (const { 1: block, 2: body = '', index } of text.matchAll(/^```(?:yaml|jsonl) (\w+)\n([\s\S]*?)^```$/gm)) {
    const lines = body.split('\n').filter((line) => line !== '')
    const example = examples.at(-1)
    const kind = kinds.find((each) => each === block)
    if (block === 'view') examples.push({ line: text.slice(0, index).split('\n').length, view: body, records: [], shown: {} })
    else if (block === 'records') example?.records.push(...lines)
    else if (kind !== undefined && example !== undefined) example.shown[kind] = lines.map((line) => JSON.parse(line))
  }
  return examples
}

/** Returns the files of a view with a layout as the page shows them. */
async function filesOf(definition: Definition, records: readonly string[]) {
  const { files } = await decideFiles(definition, records)
  const types = definition.columns.flatMap(({ name, type }) => (definition.partition_by?.includes(name) ? [] : [parseType(type)]))
  return files.map(({ partition, rows }) => ({
    folder: Object.entries(partition)
      .map((each) => each.join('='))
      .join('/'),
    rows: rows.map((row) => row.map((value, index) => jsonForm(value, types[index] ?? parseType('VARCHAR')))),
  }))
}

describe('docs/views.md', () => {
  const examples = examplesOf(docs)

  test('has examples, and every fenced block is one', () => {
    expect(examples.length).toBeGreaterThanOrEqual(4)
    const fences = [...docs.matchAll(/^```(?:yaml|json)\w*.*$/gm)].map(([fence]) => fence)
    expect(fences.filter((fence) => !/^```(yaml view|jsonl (records|rows|files|dead|columns|unmapped))$/.test(fence))).toEqual([])
  })

  test('lists every type and alias', () => {
    const [, section = ''] = /^## Types and values\n\n(.*?)\n\n/ms.exec(docs) ?? []
    const listed = [...section.matchAll(/`([^`]+)`/g)].flatMap(([, names = '']) => names.split(/\s+/))
    const names = Object.entries<TypeDescriptor>(descriptors).flatMap(([name, { aliases = [] }]) => [name, ...aliases])
    // An alias of several words, and an example of a list.
    const others = ['TIMESTAMP WITH TIME ZONE', 'VARCHAR[]']
    expect([...listed.map((name) => name.replace('(p,s)', '')), others[0]].toSorted()).toEqual([...names, others[1]].toSorted())
  })

  const functions = [...docs.matchAll(/^\| `([a-z0-9_]+)\(.*?` \| .*?\| `(.+)` \| `(.+)` \|$/gm)]

  test('has an example of every function', () => {
    const special = ['coalesce', 'extract', 'regexp_full_match', 'regexp_matches', 'if', 'ifnull', 'regexp_extract']
    const names = new Set(functions.map(([, name]) => name))
    expect([...names].toSorted()).toEqual(
      [...new Set([...allowedFunctions.keys(), ...ownFunctions.keys(), ...special])].toSorted(),
    )
    expect(functions.filter(([, name, example]) => example?.includes(`${name}(`) !== true)).toEqual([])
  })

  test('has the results of functions', async () => {
    const conditions = functions.map(([, , example, result]) => `(${example}) IS NOT DISTINCT FROM (${result})`)
    expect(await notAccepting(conditions, [{ name: 'any', type: 'JSON', path: '$' }], ['{}'], 1)).toEqual([])
  })

  test.each(examples.map((example) => [example.line, example] as const))(
    'the example at line %i is correct',
    async (_, example) => {
      const definition = withListForm(Definition.parse(parseDefinitionText(example.view, 'yaml').value))
      const { rows = [], files, dead = [], columns, unmapped } = example.shown
      if (files !== undefined) return expect(await filesOf(definition, example.records)).toEqual(files)
      const decided = await decide(definition, example.records)
      const types = definition.columns.map(({ type }) => parseType(type))
      const inJson = (value: Value, index: number) => jsonForm(value, types[index] ?? parseType('VARCHAR'))
      expect(decided.rows.map((row) => row.map(inJson))).toEqual(rows)
      expect(decided.dlq).toHaveLength(dead.length)
      expect(decided.dlq).toMatchObject(dead)
      if (columns !== undefined) expect(decided.quality.columns).toMatchObject(columns)
      if (unmapped !== undefined) expect(decided.quality.unmapped).toEqual(unmapped)
    },
  )
})
