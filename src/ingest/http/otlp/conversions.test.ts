import { Buffer } from 'node:buffer'
import { afterEach, expect, test } from 'vitest'
import { KiB, MiB } from '#lib/bytes.ts'
import { systemClock } from '#lib/clock.ts'
import { Conversions } from './conversions.ts'

let conversions = new Conversions(systemClock)
afterEach(async () => {
  await conversions.stop()
  conversions = new Conversions(systemClock)
})

const body = (...texts: readonly string[]) =>
  Buffer.from(
    JSON.stringify({
      resourceLogs: [{ scopeLogs: [{ logRecords: texts.map((text) => ({ body: { stringValue: text } })) }] }],
    }),
  )
/** Valid JSON that becomes many times its size in memory. */
const brackets = (bytes: number) => Buffer.from(`{"resourceLogs":[{"x":[${'{},'.repeat(bytes / 3)}{}]}]}`)

const run = (account: string, json: Buffer | undefined, by = conversions) =>
  by.run({
    owner: { account, endpoint: account, weight: 1 },
    encoding: 'json',
    maxBytes: 10 * MiB,
    body: () => json && [json.subarray(0, 5), json.subarray(5)],
  })

test('makes a line of each record', async () => {
  const converted = await run('a', body('one', 'two'))
  expect(converted).toMatchObject({ records: 2, tooLarge: 0 })
  expect(Buffer.concat(converted?.payload ?? []).toString()).toBe('{"body":"one"}\n{"body":"two"}\n')
})

test('while it parses, the process does other work', async () => {
  let turns = 0
  const isDone = run('a', brackets(6 * MiB)).then(() => true)
  while (!(await Promise.race([isDone, new Promise((resolve) => setTimeout(resolve, 1, false))]))) turns += 1
  expect(turns).toBeGreaterThan(10)
})

test('accounts take turns', async () => {
  const order: string[] = []
  const all = ['a', 'a', 'a', 'a', 'b'].map(async (account) => {
    await run(account, body('x'))
    order.push(account)
  })
  await Promise.all(all)
  expect(order.join('')).toBe('abaaa')
})

test('nothing is converted for a client that left', async () => {
  expect(await run('a', undefined)).toBeUndefined()
})

test('a request that does not fit in memory is refused, and the next one is converted', async () => {
  const little = new Conversions(systemClock, 32)
  const refused = run('a', brackets(8 * MiB), little)
  const next = run('a', body('x'), little)
  await expect(refused).rejects.toMatchObject({ code: 'payload_too_large', message: expect.stringContaining('smaller batches') })
  expect(await next).toMatchObject({ records: 1 })
  await little.stop()
})

test('a message says what is wrong', async () => {
  await expect(run('a', Buffer.from('{"resourceLogs":'))).rejects.toMatchObject({ code: 'bad_request' })
  await expect(run('a', Buffer.from(`"${'x'.repeat(KiB)}`))).rejects.toMatchObject({ code: 'bad_request' })
})
