import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { system } from '#lib/system.ts'
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

test('a key is refused if a bit of it flipped, and one of an earlier release, without a checksum, counts', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'inlet-seal-'))
  try {
    const path = join(directory, 'marker-key')
    const signature = (await MarkerSeal.open(system, path)).sign(content)
    const stored = await readFile(path)
    for (let bit = 0; bit < (stored.length - 1) * 8; bit += 1) {
      const damaged = Buffer.from(stored)
      damaged[bit >> 3] = (damaged[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      await writeFile(path, damaged)
      const found = await MarkerSeal.open(system, path).catch((error: Error) => error.message)
      if (found instanceof MarkerSeal) expect(found.sign(content), `bit ${bit}`).toBe(signature)
      else expect(found).toContain('is damaged')
    }
    await writeFile(path, `${'k'.repeat(43)}\n`)
    expect((await MarkerSeal.open(system, path)).sign(content)).toBe(new MarkerSeal('k'.repeat(43)).sign(content))
  } finally {
    await rm(directory, { recursive: true })
  }
})
