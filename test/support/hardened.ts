/** An installation on one machine as "Hardening" in docs/security.md asks for, and its start. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeCertificate } from './certificates.ts'
import type { Installation } from './installation.ts'
import { until } from './until.ts'

const dayMs = 86_400_000

/** The address with a name. */
export const secured = (url: string): string => url.replace('http://127.0.0.1', 'https://localhost')

/** Writes a certificate, `inlet.crt`, for every listener. Returns the settings that do not depend on what the database has. */
export async function hardenedSettings({ directory, apiUrl, nodeApiUrl }: Installation): Promise<Record<string, string>> {
  const now = Date.now()
  const { cert, key } = await makeCertificate({ names: ['localhost', '127.0.0.1'], fromMs: now - dayMs, toMs: now + 90 * dayMs })
  const [certificateFile, keyFile] = [join(directory, 'inlet.crt'), join(directory, 'inlet.key')]
  writeFileSync(certificateFile, cert)
  writeFileSync(keyFile, key)
  return {
    INLET_BASE_URL: secured(apiUrl),
    INLET_CONTROL_CERTIFICATE_FILE: certificateFile,
    INLET_CONTROL_KEY_FILE: keyFile,
    INLET_NODE_API_LISTEN: `0.0.0.0:${new URL(nodeApiUrl).port}`,
    INLET_NODE_API_CERTIFICATE_FILE: certificateFile,
    INLET_NODE_API_KEY_FILE: keyFile,
    INLET_CONTROL_URL: secured(nodeApiUrl),
    INLET_CONTROL_CA_FILE: certificateFile,
    INLET_TLS_CERTIFICATE_FILE: certificateFile,
    INLET_TLS_KEY_FILE: keyFile,
    INLET_TRUST_PROXY: '127.0.0.1',
    INLET_METRICS_TOKEN: 'metrics-of-this-installation',
    INLET_OBJECT_STORE: 'directory',
    INLET_BUCKETS_GROUP: String(process.getgid?.()),
  }
}

/** Starts Inlet, and returns what it says once it is ready. Throws with its log if it ends. */
export async function startReady(installation: Installation): Promise<Readonly<Record<string, unknown>>> {
  const child = installation.spawn('start')
  const starts = () => installation.log.split('\n').filter((line) => line.includes('"inlet running"'))
  const before = starts().length
  await until('the start to be ready', () => starts().length > before || child.exitCode !== null, 60_000)
  const said = starts()[before]
  if (said === undefined) throw new Error(installation.log)
  return JSON.parse(said)
}
