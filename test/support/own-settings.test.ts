import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import { profilesPath } from '#cli/remote/profiles.ts'
import { runCli } from './cli.ts'
import { useOwnSettings } from './own-settings.ts'

test('no command of a test finds the profiles of whoever runs it', async () => {
  expect(profilesPath(process.env).startsWith(tmpdir())).toBe(true)
  expect(await runCli(['endpoints', 'list'])).toMatchObject({ code: 1, err: expect.stringContaining('not signed in') })
})

test('options and credentials of the shell do not reach tests, unless they are meant for them', () => {
  const environment = {
    ...{ PATH: '/bin', HOME: '/home/ada', INLET_API_KEY: 'ing_live_x', INLET_TEST_SEED: '1', AWS_PROFILE: 'production' },
    ...{ INLET_E2E_REGION: 'fra', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' },
  }
  const changed: NodeJS.ProcessEnv = { ...environment }
  useOwnSettings(changed)
  expect(Object.keys(changed).toSorted()).toEqual([
    ...['AWS_CONFIG_FILE', 'AWS_SHARED_CREDENTIALS_FILE', 'GOENV', 'HOME', 'INLET_E2E_REGION', 'INLET_TEST_SEED', 'PATH'],
    'XDG_CONFIG_HOME',
  ])
  const given: NodeJS.ProcessEnv = { ...environment, INLET_E2E_CONTROL_URL: 'https://inlet.example.com' }
  useOwnSettings(given)
  expect(given).toMatchObject({ AWS_PROFILE: 'production' })
})
