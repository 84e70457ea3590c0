import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decide } from '../../test/support/decide.ts'
import { runs } from '../../test/support/thorough.ts'

test('a JSON column has what every parser reads, with the same text, whatever DuckDB accepts', async () => {
  const literals = ['NaN', 'nan', '-Infinity', 'inf', '1e999', '-1', 'null', 'true', '0.5']
  const text = fc.oneof(
    fc.string({ unit: fc.constantFrom('"', '\\', ':', ',', '[', 'nan', '-inf', ' ', 'é') }),
    fc.string({ unit: 'binary' }),
  )
  const { json } = fc.letrec<{ json: string }>((tie) => ({
    json: fc.oneof(
      { depthSize: 'small' },
      fc.constantFrom(...literals),
      text.map((each) => JSON.stringify(each.toWellFormed())),
      fc.array(tie('json'), { maxLength: 4 }).map((items) => `[${items.join(', ')}]`),
      fc
        .dictionary(
          text.map((each) => each.toWellFormed()),
          tie('json'),
          { maxKeys: 4, noNullPrototype: true },
        )
        .map(
          (object) =>
            `{${Object.entries(object)
              .map(([key, value]) => `${JSON.stringify(key)}: ${value}`)
              .join(',')}}`,
        ),
    ),
  }))
  const asText = (sent: string): unknown =>
    JSON.parse(
      sent.replace(/"(?:[^"\\]|\\.)*"|-?\b(?:nan|inf(?:inity)?)\b/gi, (token) => (token.startsWith('"') ? token : `"${token}"`)),
    )
  const documents = fc.sample(json, runs(300, 2_000))
  const columns = [
    { name: 'v', type: 'JSON', path: '$.v' },
    { name: 'list', type: 'JSON[]', path: '$.list' },
    { name: 'each', type: 'JSON[]', path: '$.list[*]' },
  ]
  const { rows } = await decide(
    { columns },
    documents.map((each) => `{"v": ${each}, "list": [${each}, 1]}`),
  )
  for (const [index, document] of documents.entries()) {
    const [value, list, each] = rows[index] ?? []
    const expected = asText(document)
    expect(value === null ? null : JSON.parse(String(value)), document).toEqual(expected)
    for (const items of [list, each]) {
      const [item] = items as readonly (string | null)[]
      expect(item === null ? null : JSON.parse(String(item)), document).toEqual(expected)
    }
  }
})
