import { connect, type Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { type TestAccount, useControl } from '../support/control.ts'
import { until } from '../support/until.ts'

const control = useControl()

const definition = {
  columns: [
    { name: 'event', type: 'VARCHAR', path: '$.event', required: true },
    { name: 'amount', type: 'DOUBLE', path: '$.amount' },
  ],
  filters: [{ condition: "event != 'noise'" }],
}
const samples = ['{"event":"a","amount":1.5}', '{"event":"noise"}', '{"amount":1}', '{"event":"b","amount":"?"}']

const preview = (account: Pick<TestAccount, 'post'>, more: object = {}) =>
  account.post('/v1/views/preview', { definition, samples, ...more })

describe('POST /v1/views/preview', () => {
  test('200 with rows, columns, errors and warnings, for any token', async () => {
    const account = await control().newAccount()
    for (const scope of ['admin', 'metrics', 'ingest'] as const) {
      const answer = await preview(account.as(scope))
      expect(answer).toMatchObject({
        status: 200,
        body: {
          success: false,
          rowCount: 2,
          rows: [
            { event: 'a', amount: 1.5 },
            { event: 'b', amount: null },
          ],
          columns: [
            { name: 'event', type: 'VARCHAR', nullCount: 0, totalCount: 2, nullRate: 0, sampleValues: ['a', 'b'] },
            { name: 'amount', type: 'DOUBLE', nullCount: 1, totalCount: 2, nullRate: 0.5, sampleValues: [1.5] },
          ],
          counts: { processed: 4, accepted: 2, dropped: 1, dlq: 1, failed: 0 },
          errors: [{ sample_index: 2, column: 'event', code: 'missing_required' }],
          warnings: [{ sample_index: 3, column: 'amount', code: 'cast_failed' }],
        },
      })
      expect(answer.body.compiledSql).toContain('SELECT')
      expect(answer.body.executionTimeMs).toBeGreaterThan(0)
    }
    expect(await account.get('/v1/views?status=all')).toMatchObject({ body: { total: 0 } })
  })

  test('200 with computed columns, and without hidden ones', async () => {
    const columns = [
      { name: 'cents', type: 'BIGINT', path: '$.cents', hidden: true },
      { name: 'euros', type: 'DECIMAL(18,2)', value: 'cents / 100.0', required: true },
      { name: 'code', type: 'BIGINT', value: 'CAST(text AS BIGINT)' },
      { name: 'text', type: 'VARCHAR', path: '$.code', hidden: true },
    ]
    const answer = await preview(await control().newAccount(), {
      definition: { columns },
      samples: ['{"cents":150,"code":"7"}', '{"cents":1,"code":"x"}', '{}'],
    })
    expect(answer).toMatchObject({
      status: 200,
      body: {
        rows: [
          { euros: '1.50', code: '7' },
          { euros: '0.01', code: null },
        ],
        columns: [{ name: 'euros' }, { name: 'code' }],
        errors: [{ sample_index: 2, column: 'euros', code: 'missing_required' }],
        warnings: [
          {
            sample_index: 1,
            column: 'code',
            message: 'column "code" cannot be computed as BIGINT from {"text":"x"} and becomes NULL',
          },
        ],
      },
    })
    expect(answer.body.rows[0]).not.toHaveProperty('cents')
  })

  test('200 at the limits: 100 samples of 64 KiB each, 100 columns', async () => {
    const columns = Array.from({ length: 100 }, (_, index) => ({ name: `c${index}`, type: 'VARCHAR', path: `$.c${index}` }))
    const sample = `{"c7":"${'\\"'.repeat(32_763)}"}`.padEnd(65_536)
    const answer = await preview(await control().newAccount(), {
      definition: { columns },
      samples: Array.from({ length: 100 }, () => sample),
    })
    expect(answer).toMatchObject({ status: 200, body: { success: true, rowCount: 100 } })
  })

  test.each(['json', 'yaml'])('200 with columns of any name, from %s', async (format) => {
    const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf']
    const columns = names.map((name) => ({ name, type: 'BIGINT', path: `$.${name}`, required: true }))
    const filters = [{ condition: '__proto__ = 1 AND "constructor" = 2 AND toString = 3' }]
    const answer = await preview(await control().newAccount(), {
      definition: JSON.stringify({ columns, filters }),
      format,
      samples: ['{"__proto__":1,"constructor":2,"toString":3,"hasOwnProperty":4,"valueOf":5}', '{"__proto__":{"constructor":7}}'],
    })
    expect(answer).toMatchObject({ status: 200, body: { rowCount: 1, errors: [{ sample_index: 1, column: '__proto__' }] } })
    expect(Object.entries(answer.body.rows[0])).toEqual(columns.map(({ name }, index) => [name, String(index + 1)]))
    expect(answer.body.columns.map(({ name }: { name: string }) => name)).toEqual(columns.map(({ name }) => name))
  })

  test.each([
    [{ samples: [] }, 'samples'],
    [{ samples: Array.from({ length: 101 }, () => '{}') }, 'samples'],
    [{ samples: ['{}', 'x'.repeat(65_537)] }, 'samples.1'],
    [{ samples: ['ü'.repeat(32_769)] }, 'samples.0'],
    [{ samples: [{}] }, 'samples.0'],
    [{ samples: undefined }, 'samples'],
    [{ definition: undefined }, 'definition'],
    [{ definition: { columns: [] } }, 'definition.columns'],
    [{ definition: { columns: [{ name: 'a', type: 'INTEGR', path: '$.a' }] } }, 'definition.columns.0.type'],
    [{ definition: { columns: [{ name: 'a', type: 'INTEGER', path: 'a' }] } }, 'definition.columns.0.path'],
    [{ definition: { ...definition, filters: [{ condition: '(select 1)' }] } }, 'definition.filters.0.condition'],
    [
      { definition: { columns: Array.from({ length: 101 }, (_, i) => ({ name: `c${i}`, type: 'DATE', path: '$.a' })) } },
      'definition.columns',
    ],
    [{ name: 'x' }, 'name'],
  ])('422, row %#, names %s', async (more, path) => {
    const answer = await preview(await control().newAccount(), more)
    expect(answer).toMatchObject({ status: 422, body: { error: 'validation_error', errors: [{ path }] } })
  })

  test('429 for an account that runs many at once, before its samples are read; other accounts are served', async () => {
    const [busy, calm] = [await control().newAccount(), await control().newAccount()]
    const { body } = await control().call('POST', '/v1/token/exchange', { api_key: busy.api_key, scope: 'ingest' })
    const head = [
      'POST /v1/views/preview HTTP/1.1',
      'Host: x',
      `Authorization: Bearer ${body.access_token}`,
      'Content-Type: application/json',
      'Content-Length: 9999999',
    ]
    const { hostname, port } = new URL(control().url)
    const sockets: Socket[] = []
    const hold = () => {
      const socket = connect(Number(port), hostname)
      socket.write(`${head.join('\r\n')}\r\n\r\n{`)
      sockets.push(socket)
    }
    await until('the share is used up', async () => {
      hold()
      // Once this request has a response, the earlier ones are being handled.
      await control().call('GET', '/healthz')
      await control().call('GET', '/healthz')
      return (await preview(busy)).status === 429
    })
    const refused = await preview(busy)
    expect(refused).toMatchObject({ status: 429, body: { error: 'too_many_requests', retry: true } })
    expect(refused.headers.get('retry-after')).toBe('1')
    expect(await preview(calm)).toMatchObject({ status: 200 })
    for (const socket of sockets) socket.destroy()
    await until('the share is free again', async () => (await preview(busy)).status === 200)
    const answers = await Promise.all(Array.from({ length: 12 }, () => preview(busy)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 429]))
  })
})
