import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parseCertificates, pinOf, rootOf } from './root-certificate.ts'

const chain = readFileSync(join(import.meta.dirname, '../../test/fixtures/tls/chain.crt'))

test('the root of a chain is its last certificate, if that signed itself', () => {
  const [leaf, root] = parseCertificates(chain)
  expect([leaf?.subject, root?.subject]).toEqual(['CN=control.inlet.test', 'CN=root.inlet.test'])
  expect(rootOf(chain)?.raw).toEqual(root?.raw)
  expect(rootOf(Buffer.from(String(leaf)))).toBeUndefined()
  expect(rootOf(Buffer.from('no certificate'))).toBeUndefined()
})

test('a pin does not depend on how the PEM file is written, and differs for each certificate', () => {
  const pins = parseCertificates(chain).map(pinOf)
  const [again] = parseCertificates(Buffer.from(`subject=CN = x\r\n${String(chain).replaceAll('\n', '\r\n')}`)).map(pinOf)
  expect(pins[0]).toMatch(/^[\w-]{43}$/)
  expect(again).toBe(pins[0])
  expect(new Set(pins).size).toBe(2)
})

test('throws for a certificate that cannot be read', () => {
  expect(() => parseCertificates(Buffer.from('-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----'))).toThrow()
})
