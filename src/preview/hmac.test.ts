/** HMAC in SQL beside RFC 4231 and node:crypto, and secrets that must not be in statements. */
import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { systemClock } from '#lib/clock.ts'
import type { SecretValues } from '#model/secret.ts'
import { MissingSecret } from '#records/secret-variables.ts'
import { compileView } from '#views/compile.ts'
import { runs } from '../../test/support/thorough.ts'
import { decideSamples } from './decide-samples.ts'

const definition = {
  columns: [
    { name: 's', type: 'VARCHAR', path: '$.s', hidden: true },
    { name: 'h', type: 'VARCHAR', value: "hmac_sha256('key', s)" },
  ],
}
const envelope = { protocol: 'http' } as const

/** Returns the HMAC of each text. */
async function hashesOf(secrets: SecretValues, texts: readonly (string | null)[], of: object = definition) {
  const view = await compileView(of as typeof definition)
  const { decided } = await decideSamples(
    view,
    texts.map((s) => JSON.stringify({ s })),
    { statement: () => ({ timeoutMs: 20_000 }), originOf: () => ({ envelope, receivedAtMs: systemClock.now() }), secrets },
  )
  return decided.map(({ values }) => values.at(-1) ?? null)
}

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')
const bytes = (count: number, byte: number) => Buffer.alloc(count, byte)

describe('hmac_sha256', () => {
  // RFC 4231, but case 3 and 4, whose data is not text, and case 5, which cuts the result.
  test.each([
    ['1', bytes(20, 0x0b), 'Hi There', 'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7'],
    [
      '2',
      Buffer.from('Jefe'),
      'what do ya want for nothing?',
      '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    ],
    [
      '6',
      bytes(131, 0xaa),
      'Test Using Larger Than Block-Size Key - Hash Key First',
      '60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54',
    ],
    [
      '7',
      bytes(131, 0xaa),
      'This is a test using a larger than block-size key and a larger than block-size data. The key needs to be hashed before being used by the HMAC algorithm.',
      '9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2',
    ],
  ])('case %s of RFC 4231', async (_, key, text, expected) => {
    expect(await hashesOf({ key: base64(key) }, [text])).toEqual([expected])
  })

  test('is what node:crypto returns, for keys around the size of a block and any text', async () => {
    const key = fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 130 }),
      fc.constantFrom(63, 64, 65).map((n) => bytes(n, 7)),
    )
    const texts = fc.array(
      fc.string({ unit: 'grapheme', maxLength: 200 }).filter((text) => text.isWellFormed()),
      {
        minLength: 1,
        maxLength: 20,
      },
    )
    await fc.assert(
      fc.asyncProperty(key, texts, async (secret, all) => {
        const expected = all.map((text) => createHmac('sha256', secret).update(text).digest('hex'))
        expect(await hashesOf({ key: base64(secret) }, all)).toEqual(expected)
      }),
      { numRuns: runs(10, 200) },
    )
  })

  test('is NULL of NULL, and works within other calls and in filters', async () => {
    const key = base64(bytes(32, 1))
    const hash = createHmac('sha256', bytes(32, 1)).update('a').digest('hex')
    expect(await hashesOf({ key }, ['a', null])).toEqual([hash, null])
    const columns = [definition.columns[0], { name: 'c', type: 'VARCHAR', value: "upper(left(hmac_sha256('key', lower(s)), 8))" }]
    expect(await hashesOf({ key }, ['A'], { columns })).toEqual([hash.slice(0, 8).toUpperCase()])
    const filters = [{ condition: `hmac_sha256('key', s) = '${hash}'` }]
    expect(await hashesOf({ key }, ['a'], { ...definition, filters })).toEqual([hash])
  })

  test('names its secrets, and no statement has one', async () => {
    const view = await compileView(definition)
    expect(view.secrets).toEqual(['key'])
    expect(view.sql).toContain("getvariable('inner_pad_of_key')")
    const plain = await compileView({ columns: [{ name: 'a', type: 'VARCHAR', path: '$.a' }] })
    expect(plain.secrets).toEqual([])
  })

  test('is never computed without its secret', async () => {
    await expect(hashesOf({}, ['a'])).rejects.toThrow(MissingSecret)
    await expect(hashesOf({ other: base64(bytes(32, 1)) }, ['a'])).rejects.toThrow('the secret "key" is missing here')
  })

  test('takes only secrets of the account, where these are known', async () => {
    const of = (value: string) => ({ columns: [{ name: 'h', type: 'VARCHAR', value }] })
    await compileView(of("hmac_sha256('email_key', 'x')"), { secrets: ['email_key'] })
    const refused = async (value: string, secrets: readonly string[]) =>
      compileView(of(value), { secrets }).then(
        () => undefined,
        ({ errors }) => errors[0],
      )
    expect(await refused("hmac_sha256('emial_key', 'x')", ['email_key'])).toEqual({
      path: 'columns.0.value',
      code: 'unknown_name',
      message:
        '"emial_key" is not a secret of this account: did you mean "email_key"? Otherwise create it, such as with inlet secrets create emial_key',
      excerpt: "hmac_sha256('emial_key', 'x')\n            ^",
    })
    expect(await refused("hmac_sha256('emial_key', 'x')", [])).toMatchObject({ code: 'unknown_name' })
    expect(await refused("hmac_sha256('a; DROP', 'x')", [])).toMatchObject({ code: 'unknown_name' })
    expect(await refused("hmac_sha256(lower('X'), 'x')", [])).toMatchObject({ code: 'not_allowed' })
    expect(await refused("hmac_sha256('email_key')", ['email_key'])).toMatchObject({ code: 'wrong_type' })
    expect(await refused("hmac_sha256('email_key', 5)", ['email_key'])).toMatchObject({ code: 'wrong_type' })
  })
})
