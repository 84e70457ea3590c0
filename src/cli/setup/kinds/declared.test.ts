import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { UserError } from '#lib/user-error.ts'
import { runs } from '../../../../test/support/thorough.ts'
import { readDeclared } from './declared.ts'
import { Problems } from './problems.ts'

const shop = readFileSync(new URL('../../../../examples/setup/shop.yaml', import.meta.url), 'utf8')

/** Returns what is declared, and the message about its problems. */
function read(text: string, environment: Readonly<Record<string, string>> = {}) {
  const problems = new Problems()
  const setup = readDeclared([{ name: 'a.yaml', text }], environment, problems)
  let message = ''
  try {
    problems.throwIfAny('Nothing was changed.')
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    message = error.message
  }
  return { setup, message, count: problems.count }
}

describe('a file', () => {
  test('declares lists by kind, with the defaults of the API', () => {
    const { setup, message } = read(shop)
    expect(message).toBe('')
    expect(setup.endpoints.map(({ value }) => value)).toEqual([
      {
        ...{ name: 'shop', region: 'loc', destination: 'lake', segment_max_age_seconds: 30 },
        compaction: { period: 'day', except_views: [], remove_after_hours: 168 },
      },
    ])
    expect(setup.bindings.map(({ value }) => value)).toEqual([
      { endpoint: 'shop', view: 'orders', is_required: false, canary_start_ts: null },
    ])
    expect([...setup.kinds]).toEqual(['endpoints', 'views', 'bindings', 'keys'])
  })

  test.each([
    [`keys: [{ name: "\${A}-\${B}", scopes: [query] }]`, { INLET_VAR_A: 'x', INLET_VAR_B: '$' }, 'x-$'],
    [`keys: [{ name: "$\${A}", scopes: [query] }]`, { INLET_VAR_A: 'x' }, `\${A}`],
    [`keys: [{ name: "\${A}", scopes: [query] }]`, { INLET_VAR_A: `\${B}`, INLET_VAR_B: 'x' }, `\${B}`],
  ])('has variables: %s', (text, environment, name) => {
    expect(read(text, environment).setup.keys.map(({ value }) => value.name)).toEqual([name])
  })

  test.each([
    [`\${A}`, { A: 'secret' }, `names the variable A, which is not set: set INLET_VAR_A`],
    [`\${a}`, { INLET_VAR_a: 'x' }, `has \${a}, which is no variable`],
    [`\${A`, { INLET_VAR_A: 'x' }, `has \${A, which is no variable`],
    [`\${}`, { INLET_VAR_: 'x' }, `has \${}, which is no variable`],
  ])('reads no other variables: %s', (name, environment: Record<string, string>, expected) => {
    const { message } = read(JSON.stringify({ keys: [{ name, scopes: ['query'] }] }), environment)
    expect(message).toContain(`a.yaml:1:18: keys[0].name: ${expected}`)
    expect(message).not.toContain('secret')
  })

  test('that is anything else has problems, and never a crash', () => {
    const edits = fc.array(
      fc.tuple(fc.nat(shop.length), fc.nat(40), fc.string({ unit: fc.constantFrom(...' \n\t:-[]{}#&*!|>\'"%@`ab0,?~') })),
      {
        minLength: 1,
        maxLength: 4,
      },
    )
    const damaged = edits.map((list) =>
      list.reduce((text, [at, length, added]) => text.slice(0, at) + added + text.slice(at + length), shop),
    )
    const other = fc.anything({ withNullPrototype: false }).map((value) => JSON.stringify(value) ?? '')
    const list = fc
      .dictionary(
        fc.constantFrom('destinations', 'endpoints', 'views', 'bindings', 'keys', '__proto__', 'x'),
        fc.array(fc.jsonValue()),
      )
      .map((value) => JSON.stringify(value))
    fc.assert(
      fc.property(fc.oneof(damaged, other, list), (text) => {
        const { message, count, setup } = read(text)
        expect(message === '').toBe(count === 0)
        // Every line says where.
        for (const line of message.split('\n').slice(2)) expect(line).toMatch(/^(a\.yaml(:\d+:\d+)?: .|… and \d+ more$)/)
        for (const { value } of setup.endpoints) expect(value.region).toMatch(/^[a-z]{3}$/)
      }),
      { numRuns: runs(300, 3_000) },
    )
  })
})
