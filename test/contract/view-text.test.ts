/** Definitions sent as text: YAML and JSON. */
import { describe, expect } from 'vitest'
import { testWithAccount, useControl } from '../support/control.ts'

const control = useControl()
const test = testWithAccount(control)

const yaml = `columns:
  - name: event      # what happened
    type: VARCHAR
    path: $.event
    required: true
  - { name: amount, type: 'DECIMAL(18,2)', path: $.amount }
filters:
  - condition: event != 'x'
`
const definition = {
  columns: [
    { name: 'event', type: 'VARCHAR', path: '$.event', required: true },
    { name: 'amount', type: 'DECIMAL(18,2)', path: '$.amount' },
  ],
  filters: [{ condition: "event != 'x'" }],
}
const samples = ['{"event":"a","amount":"1.50"}']

/** The problems and their positions: an invalid path, and a condition on an unknown column. */
const wrong = yaml.replace('path: $.amount', 'path: amount').replace('event !=', 'nope !=')
const problems = [
  { path: 'definition.columns.1.path', message: 'must start with $, such as $.user.id', line: 6, column: 50 },
  { path: 'definition.filters.0.condition', message: '"nope" is not a column of this view', line: 8, column: 16 },
]

describe('a definition as text', () => {
  test('201 on create from YAML; the response has the object', async ({ account }) => {
    const made = await account.post('/v1/views', { name: 'a', format: 'yaml', definition: yaml })
    expect(made).toMatchObject({ status: 201, body: { format: 'yaml', definition } })
    expect(await account.get(`/v1/views/${made.body.id}`)).toMatchObject({ status: 200, body: { format: 'yaml', definition } })
    expect(await account.post(`/v1/views/${made.body.id}/publish`)).toMatchObject({ status: 200, body: { definition } })
  })

  test('201 on create from JSON text, the default format', async ({ account }) => {
    const text = JSON.stringify(definition, null, 2)
    const made = await account.post('/v1/views', { name: 'a', definition: text })
    expect(made).toMatchObject({ status: 201, body: { format: 'json', definition } })
  })

  test('200 on change, in the format of the view or another one', async ({ account }) => {
    const { body: view } = await account.post('/v1/views', { name: 'a', format: 'yaml', definition: yaml })
    const changed = { columns: [{ name: 'b', type: 'DATE', path: '$.b' }] }
    const change = (body: object) => account.patch(`/v1/views/${view.id}`, body)
    const block = 'columns:\n- name: b\n  type: DATE\n  path: $.b\n'
    expect(await change({ definition: block })).toMatchObject({ status: 200, body: { format: 'yaml', definition: changed } })
    expect(await change({ format: 'json' })).toMatchObject({ status: 200, body: { format: 'json', definition: changed } })
    expect(await change({ definition: block })).toMatchObject({ status: 422, body: { errors: [{ path: 'definition' }] } })
    expect(await change({ definition: yaml, format: 'yaml' })).toMatchObject({
      status: 200,
      body: { format: 'yaml', definition },
    })
    expect(await change({ definition: wrong })).toMatchObject({ status: 422, body: { errors: problems } })
    expect(await change({ definition: changed })).toMatchObject({ status: 200, body: { definition: changed } })
  })

  test('200 on preview', async ({ account }) => {
    expect(await account.post('/v1/views/preview', { definition: yaml, format: 'yaml', samples })).toMatchObject({
      status: 200,
      body: { success: true, rows: [{ event: 'a', amount: '1.50' }] },
    })
    expect(await account.post('/v1/views/preview', { definition: wrong, format: 'yaml', samples })).toMatchObject({
      status: 422,
      body: { error: 'validation_error', errors: problems },
    })
  })

  test('200 on preview with warnings about names, and where they are in the text', async ({ account }) => {
    const definition = 'columns:\n  - {name: fine, type: DATE, path: $.a}\n  - {name: user, type: DATE, path: $.a}\n'
    expect(await account.post('/v1/views/preview', { definition, format: 'yaml', samples })).toMatchObject({
      status: 200,
      body: {
        warnings: expect.arrayContaining([
          {
            ...{ sample_index: null, column: 'user', code: 'reserved_word', path: 'definition.columns.1.name' },
            ...{ place: { line: 3, column: 12 }, message: expect.stringContaining('"user" is a reserved word in') },
          },
        ]),
      },
    })
    expect(await account.post('/v1/views', { name: 'warned', definition, format: 'yaml' })).toMatchObject({
      ...{ status: 201, body: { warnings: [{ code: 'reserved_word', line: 3, column: 12 }] } },
    })
  })

  test('422 locates problems of the shape by line and column', async ({ account }) => {
    const post = (text: string) => account.post('/v1/views', { name: 'a', format: 'yaml', definition: text })
    const refused = async (text: string) => {
      const { status, body } = await post(text)
      expect(status).toBe(422)
      return body.errors
    }
    expect(await refused('columns:\n  - name: a\n    typ: VARCHAR\n    path: $.a\n')).toEqual([
      {
        path: 'definition.columns.0.type',
        message: 'is required: text of 1 to 128 characters (example: VARCHAR)',
        line: 2,
        column: 5,
      },
      {
        path: 'definition.columns.0.typ',
        message: expect.stringMatching(/^is not a known field: known are name, type, path, .*, parquet$/),
        line: 3,
        column: 10,
      },
    ])
    expect(await refused('columns:\n  - {name: a, type: DATE, path: $.a}\n  - {name: A, type: DATE, path: $.a}\n')).toMatchObject(
      [{ path: 'definition.columns.1.name', line: 3, column: 12 }],
    )
    const wrong = await post('columns:\n  - {name: a, type: DATES, path: $.a}\n')
    expect(wrong.body.detail).toMatch(/^definition\.columns\.0\.type: unknown type/)
    expect(await refused('columns: "')).toMatchObject([{ path: 'definition', line: 1, column: 11 }])
    expect(await refused('- 1')).toMatchObject([{ path: 'definition', line: 1, column: 1 }])
    expect(await refused('')).toMatchObject([{ path: 'definition', line: 1, column: 1 }])
    expect(await refused('x'.repeat(262_145))).toMatchObject([{ path: 'definition' }])
    expect(await refused('a: &a [x]\nb: *a\n'.repeat(1))).toMatchObject([{}, {}, {}])
  })

  test('422 lists the first hundred problems of a hostile text', async ({ account }) => {
    const keys = Array.from({ length: 11_000 }, (_, index) => `k${index}:\n`).join('')
    for (const send of [
      () => account.post('/v1/views', { name: 'a', format: 'yaml', definition: keys }),
      () => account.post('/v1/views/preview', { format: 'yaml', definition: keys, samples }),
    ]) {
      const { status, body } = await send()
      expect({ status, body }).toMatchObject({ status: 422, body: { detail: expect.stringMatching(/\(and 11000 more\)$/) } })
      expect(body.errors).toHaveLength(100)
      expect(body.errors[99]).toMatchObject({ path: 'definition.k98', line: 99, column: 5 })
    }
  })

  test('422 for anything but an object or text', async ({ account }) => {
    for (const given of [1, true, null, []]) {
      const answer = await account.post('/v1/views', { name: 'a', definition: given })
      expect(answer).toMatchObject({ status: 422, body: { errors: [{ path: 'definition' }] } })
    }
  })
})
