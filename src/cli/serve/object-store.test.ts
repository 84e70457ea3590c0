import { expect, test } from 'vitest'
import { readConfig } from '#config/config.ts'
import { createLogger } from '#lib/telemetry.ts'
import type { ChildName } from './child-environment.ts'
import { checkObjectStore } from './object-store.ts'

const elsewhere = 'https://control.test:8082'

function check(control: string, objectStore: string, children: readonly ChildName[] = ['delivery', 'ingest']): readonly string[] {
  const environment = { INLET_CONTROL_URL: control, INLET_OBJECT_STORE: objectStore }
  const lines: string[] = []
  const logger = createLogger('node', null, undefined, { write: (line) => void lines.push(line) })
  checkObjectStore(readConfig(environment), children, logger, environment.INLET_OBJECT_STORE)
  return lines
}

test('a node of a control process on another machine does not use directories unless somebody says so', () => {
  expect(() => check(elsewhere, '')).toThrow(/^INLET_OBJECT_STORE: control is on another machine, .* set s3, as on control, or/)
  expect(check(elsewhere, 'directory')).toEqual([expect.stringContaining('this node writes to buckets on its own disk')])
  expect(check(elsewhere, 's3')).toEqual([])
})

test('on one machine the default is fine', () => {
  for (const control of ['', 'http://127.0.0.1:8082', 'https://localhost:8082', 'https://[::1]:8082'])
    expect(check(control, '')).toEqual([])
  expect(check(elsewhere, '', ['control', 'delivery', 'ingest'])).toEqual([])
})
