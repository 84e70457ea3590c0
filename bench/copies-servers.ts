/** A node whose endpoint has one copy or two, for copies.ts: `node copies-servers.ts COPIES DIRECTORY GATEWAY`. */
import { startInlet } from './inlet-node.ts'
import { answerQuestions } from './rig.ts'

const [copies, directory = '', gateway = ''] = process.argv.slice(2)
const store = {
  INLET_COPY_URL: 's3://copies/bench',
  INLET_COPY_S3_ENDPOINT: gateway,
  INLET_COPY_ACCESS_KEY_ID: 'bench',
  INLET_COPY_SECRET_ACCESS_KEY: 'b'.repeat(32),
}
const bounds = { INLET_MAX_CONNECTIONS: '100000', INLET_MAX_UNAUTHENTICATED_PER_ADDRESS: '10000' }
const settings = { ...bounds, ...(copies === '2' ? store : {}) }
answerQuestions(await startInlet(directory, { copies: Number(copies), settings }))
