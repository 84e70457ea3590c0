/** Reads a body as it arrives over the network. */
import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { expect } from 'vitest'
import type { BodyRecords } from '#ingest/http/body/body-records.ts'
import { forEachRecord } from '#log/records.ts'

/** Returns the records of a body that arrives in chunks, or why it is refused. */
export function readBody(found: BodyRecords, body: string | Buffer, cuts: readonly number[] = []) {
  const bytes = Buffer.from(body)
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  const chunks = places.slice(1).map((end, index) => Buffer.from(bytes.subarray(places[index], end)))
  const problem = firstProblem(chunks, found) ?? found.end(chunks)
  if (problem !== undefined) return { refused: problem.message.replace(/; (send|none) .*/, ''), code: problem.code }
  const payload = Buffer.concat(chunks)
  expect(payload).toHaveLength(bytes.length)
  const records: string[] = []
  if (found.records > 0 || found.layout !== 'single') {
    forEachRecord({ layout: found.layout, payload }, (start, end) => records.push(payload.toString('utf8', start, end)))
  }
  expect(records).toHaveLength(found.records)
  return { layout: found.layout, records }
}

function firstProblem(chunks: readonly Buffer[], found: BodyRecords) {
  for (const chunk of chunks) {
    const problem = found.push(chunk)
    if (problem !== undefined) return problem
  }
  return undefined
}

/** White space of JSON. */
export const anySpace = fc.string({ unit: fc.constantFrom(' ', '\t', '\r', '\n'), maxLength: 3 })

/** Where a body is cut into chunks. */
export const anyCuts = fc.array(fc.nat(), { maxLength: 6 })

/** JSON of any value, on one line or on several. */
export const anyJson = fc
  .tuple(fc.jsonValue(), fc.constantFrom(undefined, 1, '\t'))
  .map(([value, indent]) => JSON.stringify(value, null, indent))
