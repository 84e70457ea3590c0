import { describe, expect, test } from 'vitest'
import { isKeyList, Keyring, newSecretKey } from './keyring.ts'
import { UserError } from './user-error.ts'

const [first, second] = [newSecretKey(), newSecretKey()]
const ring = new Keyring(first, 'the test')

describe('Keyring', () => {
  test.each(['', 'secret', '{"d":"ß"}', 'x'.repeat(100_000)])('opens what it sealed (%#)', (secret) => {
    const sealed = ring.seal(secret, 'table/row')
    expect(ring.open(sealed, 'table/row')).toBe(secret)
    expect(sealed.key_id).toMatch(/^[0-9a-f]{8}$/)
    if (secret !== '') expect(Buffer.from(sealed.text, 'base64url').includes(secret)).toBe(false)
  })

  test('seals the same secret differently each time', () => {
    expect(ring.seal('secret', 'row').text).not.toBe(ring.seal('secret', 'row').text)
  })

  test('the id of a key is the same in every process, and not part of the key', () => {
    expect(new Keyring(first, 'another').keyId).toBe(ring.keyId)
    expect(Buffer.from(first, 'base64').toString('hex')).not.toContain(ring.keyId)
  })

  test('after a rotation the new key seals, and both open', () => {
    const old = ring.seal('secret', 'row')
    const rotated = new Keyring(`${second},\n${first}`, 'the test')
    expect(rotated.open(old, 'row')).toBe('secret')
    const sealed = rotated.seal('secret', 'row')
    expect(sealed.key_id).toBe(new Keyring(second, '').keyId)
    expect(() => ring.open(sealed, 'row')).toThrow(UserError)
    expect(() => ring.open(sealed, 'row')).toThrow(`encrypted with the key ${sealed.key_id}, and the test has ${ring.keyId}: add`)
  })

  test('opens nothing that was moved, changed or cut', () => {
    const { key_id, text } = ring.seal('secret', 'row/1')
    const changed = Buffer.from(text, 'base64url')
    changed[15] = (changed[15] ?? 0) ^ 1
    for (const [other, place] of [
      [text, 'row/2'],
      [changed.toString('base64url'), 'row/1'],
      [text.slice(0, -4), 'row/1'],
      [text.slice(0, 8), 'row/1'],
      ['', 'row/1'],
    ] as const) {
      expect(() => ring.open({ key_id, text: other }, place)).toThrow(`${place} in the database was changed`)
    }
  })
})

test.each([
  ['', false],
  ['secret', false],
  [first, true],
  [`${first}, ${second}`, true],
  [`${first}\n${second}\n`, true],
  [`${first},secret`, false],
  [first.slice(4), false],
  [`${first}AAAA`, false],
  [Buffer.alloc(32, 255).toString('base64url'), true],
])('isKeyList(%j): %s', (list, expected) => {
  expect(isKeyList(list)).toBe(expected)
})
