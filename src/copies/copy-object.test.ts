/** The golden files of version 1, written once by test/fixtures/copies/write.ts. */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { CopyEncoder, type CopyHeader, DamagedCopyError, decodeCopy, encodeCopy } from './copy-object.ts'

const golden = (name: string) => readFileSync(resolve(import.meta.dirname, '../../test/fixtures/copies', name))
const header: Omit<CopyHeader, 'kind' | 'number'> = {
  nodeId: '0b8fbf52-0d6e-4f0f-9a83-7f8f9c1d2e3f',
  incarnation: 'k3v9x0q2ab',
  writer: '000102030405060708090a0b0c0d0e0f',
  createdAtMicros: 1_795_162_530_123_456,
}
const segment = { logName: '7c3c1f6e-1f53-4a9b-8b0c-2f6f4f0a9d11', incarnation: 'abcdefghij', seq: 41 }

test('the golden files were never rewritten', () => {
  const hashes = ['pieces', 'closing'].map((name) => createHash('sha256').update(golden(name)).digest('hex'))
  expect(hashes).toEqual([
    '0e56ffbd71750a38d3b5fe2431e5b81f314e748d58fb054eece4a608e9d37e91',
    '67a54fa3e9f27a628a68b1b9bacd4e525d06c12d017ba4306bf5cd0ea67af4fb',
  ])
})

test('what an earlier release has put is read', async () => {
  expect(await decodeCopy(golden('pieces'))).toEqual({
    ...{ ...header, kind: 'pieces', number: 7 },
    pieces: [
      { ...segment, at: 0, chunks: [Buffer.from('the header and a group')] },
      { logName: 'other', incarnation: 'zzzzzzzzzz', seq: 2 ** 40, at: 2 ** 33, chunks: [Buffer.from('of another log')] },
    ],
  })
  expect(await decodeCopy(golden('closing'))).toEqual({ ...header, kind: 'closing', number: 8, pieces: [] })
})

test('objects that are encoded at once do not mix', async () => {
  const encoder = new CopyEncoder()
  const sizes = [5, 200_000, 3, 100_000]
  const objects = sizes.map((bytes, number) =>
    encoder.encode({ ...header, kind: 'pieces', number }, [{ ...segment, at: 0, chunks: [Buffer.alloc(bytes, number)] }]),
  )
  for (const [number, object] of (await Promise.all(objects)).entries())
    expect(await decodeCopy(object)).toMatchObject({ number, pieces: [{ chunks: [Buffer.alloc(sizes[number] ?? 0, number)] }] })
})

test('each bit that flips is damage, and so is an object that is cut', async () => {
  const object = await encodeCopy({ ...header, kind: 'pieces', number: 0 }, [
    { ...segment, at: 96, chunks: [Buffer.from('records '.repeat(20))] },
  ])
  const damaged = async (bytes: Uint8Array) => {
    const error: unknown = await decodeCopy(bytes).catch((thrown: unknown) => thrown)
    return error instanceof DamagedCopyError
  }
  for (let bit = 0; bit < object.length * 8; bit += 1) {
    const bytes = Buffer.from(object)
    bytes.writeUInt8((bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7)), bit >> 3)
    expect(await damaged(bytes), `bit ${bit}`).toBe(true)
  }
  for (const length of [0, 50, 96, object.length - 1])
    expect(await damaged(object.subarray(0, length)), `${length} bytes`).toBe(true)
  expect(await damaged(Buffer.concat([object, Buffer.alloc(1)]))).toBe(true)
})
