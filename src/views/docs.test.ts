/** The examples of docs/views.md: a view, records, and what they become. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { Definition } from '#model/definition.ts'
import { decide } from '../../test/support/decide.ts'
import { parseDefinitionText } from './definition-text.ts'

type Example = { readonly line: number; readonly view: string; readonly records: string[]; rows: unknown[]; dead: unknown[] }

const docs = readFileSync(new URL('../../docs/views.md', import.meta.url), 'utf8')

function examplesOf(text: string): readonly Example[] {
  const examples: Example[] = []
  for (const { 1: kind, 2: body = '', index } of text.matchAll(
    /^```(?:yaml|jsonl) (view|records|rows|dead)\n([\s\S]*?)^```$/gm,
  )) {
    const lines = body.split('\n').filter((line) => line !== '')
    const example = examples.at(-1)
    if (kind === 'view')
      examples.push({ line: text.slice(0, index).split('\n').length, view: body, records: [], rows: [], dead: [] })
    else if (kind === 'records') example?.records.push(...lines)
    else if (kind === 'rows' && example !== undefined) example.rows = lines.map((line) => JSON.parse(line))
    else if (example !== undefined) example.dead = lines.map((line) => JSON.parse(line))
  }
  return examples
}

describe('docs/views.md', () => {
  const examples = examplesOf(docs)

  test('has examples, and no fenced block that is none', () => {
    expect(examples.length).toBeGreaterThanOrEqual(4)
    const fences = [...docs.matchAll(/^```(?:yaml|json)\w*.*$/gm)].map(([fence]) => fence)
    expect(fences.filter((fence) => !/^```(yaml view|jsonl (records|rows|dead))$/.test(fence))).toEqual([])
  })

  test.each(examples.map((example) => [example.line, example] as const))('the example at line %i is so', async (_, example) => {
    const definition = Definition.parse(parseDefinitionText(example.view, 'yaml').value)
    const { rows, dlq } = await decide(definition, example.records)
    expect(rows).toEqual(example.rows)
    expect(dlq).toHaveLength(example.dead.length)
    expect(dlq).toMatchObject(example.dead)
  })
})
