import { expect, test } from 'vitest'
import { nearestName } from './nearest-name.ts'

const known = ['DATA_DIR', 'DATABASE_URL', 'LOG_LEVEL', 'CONTROL_LISTEN', 'INGEST_LISTEN', 'MQTT_LISTEN']

test.each([
  ['INGSET_LISTEN', 'INGEST_LISTEN'],
  ['LOGLEVEL', 'LOG_LEVEL'],
  ['DATA_DIRECTORY', 'DATA_DIR'],
  ['DATABASE', 'DATABASE_URL'],
  ['DATA', 'DATA_DIR'],
  ['MQT_LISTN', 'MQTT_LISTEN'],
])('%s means %s', (typed, meant) => {
  expect(nearestName(typed, known)).toBe(meant)
})

test('two exchanged letters are one edit', () => {
  expect(nearestName('hlep', ['adopt', 'help'])).toBe('help')
})

test.each(['PORT', 'REPLICAS', 'TEST_THOROUGH'])('%s means none of them', (typed) => {
  expect(nearestName(typed, known)).toBeUndefined()
})
