import { expect, test } from 'vitest'
import { MarkerSeal } from './marker-seal.ts'

const seal = new MarkerSeal('a key')
const content = { id: 'x', records: 3, artifacts: { parquet: { key: 'k' } } }
const encode = (value: object, space = 1) => Buffer.from(JSON.stringify(value, null, space))

test('a node recognizes its own markers, however they are formatted', () => {
  const signed = { ...content, signature: seal.sign(content) }
  for (const space of [0, 1, 4]) expect(seal.isOwn(encode(signed, space))).toBe(true)
})

test('a marker that someone changed, or that another node wrote, is not its own', () => {
  const signature = seal.sign(content)
  expect(seal.isOwn(encode({ ...content, records: 2, signature }))).toBe(false)
  expect(seal.isOwn(encode({ ...content, more: 1, signature }))).toBe(false)
  expect(seal.isOwn(encode(content))).toBe(false)
  expect(seal.isOwn(encode({ ...content, signature: null }))).toBe(false)
  expect(seal.isOwn(encode({ ...content, signature: new MarkerSeal('another').sign(content) }))).toBe(false)
  for (const text of ['', 'null', '7', '[]', '{']) expect(seal.isOwn(Buffer.from(text))).toBe(false)
})
