import { expect, test, vi } from 'vitest'
import { readConfig } from '#config.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { ChildName } from './child-environment.ts'
import { warnAboutSplitBuckets } from './split-buckets.ts'

const certificate = { INLET_NODE_API_CERTIFICATE_FILE: 'control.crt', INLET_NODE_API_KEY_FILE: 'control.key' }
const control = ['control'] as const
const node = ['delivery', 'ingest'] as const

test.each([
  [{}, ['control', 'delivery', 'ingest'], false],
  [{ INLET_CONTROL_URL: 'https://localhost:8082' }, node, false],
  [{ INLET_CONTROL_URL: 'https://[::1]:8082' }, node, false],
  [{ INLET_CONTROL_URL: 'https://control.internal:8082' }, node, true],
  [{ INLET_CONTROL_URL: 'https://control.internal:8082', INLET_OBJECT_STORE: 's3' }, node, false],
  [{ ...certificate, INLET_NODE_API_LISTEN: '0.0.0.0:8082' }, control, true],
  [{ ...certificate, INLET_NODE_API_LISTEN: '0.0.0.0:8082' }, node, false],
  [{ ...certificate, INLET_NODE_API_LISTEN: '0.0.0.0:8082', INLET_OBJECT_STORE: 's3' }, control, false],
] satisfies [Record<string, string>, readonly ChildName[], boolean][])('%j of %j: warns %s', (environment, processes, warns) => {
  const warn = vi.fn()
  warnAboutSplitBuckets(readConfig(environment), processes, { warn } as unknown as Logger)
  expect(warn.mock.calls.length).toBe(warns ? 1 : 0)
})
