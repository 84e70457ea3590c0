import { join } from 'node:path'

/** Returns the paths of files in the data directory. */
export function dataPaths(data: string) {
  return {
    data,
    database: join(data, 'inlet.db'),
    firstApiKey: join(data, 'first-api-key'),
    signInLink: join(data, 'sign-in-link'),
    nodeToken: join(data, 'node-token'),
    operatorToken: join(data, 'operator-token'),
    secretKey: join(data, 'secret-key'),
    developmentCa: join(data, 'development-ca.pem'),
    node: join(data, 'node'),
    nodeId: join(data, 'node', 'id'),
    nodeCredential: join(data, 'node', 'credential'),
    nodeAdoption: join(data, 'node', 'adoption'),
    nodeFence: join(data, 'node', 'fence'),
    nodeCertificate: join(data, 'node', 'certificate.pem'),
    controlRoot: join(data, 'node', 'control-ca.pem'),
    copyStore: join(data, 'node', 'copy-store'),
    markerKey: join(data, 'node', 'marker-key'),
    ingestSnapshot: join(data, 'node', 'ingest-snapshot.ndjson'),
    deliverySnapshot: join(data, 'node', 'delivery-snapshot.ndjson'),
    wal: join(data, 'node', 'wal'),
    storedRequests: join(data, 'node', 'stored-requests'),
    adoptedRequests: join(data, 'node', 'adopted-requests'),
    handedRequests: join(data, 'node', 'handed-requests'),
    requestCounts: join(data, 'node', 'stored-requests', 'counts'),
    openSegments: join(data, 'node', 'wal', 'open-segments'),
    walNodeId: join(data, 'node', 'wal', 'node-id'),
    outbox: join(data, 'node', 'outbox'),
    recordedCommits: join(data, 'node', 'recorded-commits.json'),
    parked: join(data, 'node', 'parked'),
    traceLinks: join(data, 'node', 'trace-links'),
    assignments: join(data, 'node', 'assignments'),
    ingestBlocked: join(data, 'node', 'ingest-blocked.json'),
    deliveryBlocked: join(data, 'node', 'delivery-blocked.json'),
    scrubState: join(data, 'node', 'scrub.json'),
    windows: join(data, 'node', 'windows'),
    scratch: join(data, 'node', 'scratch'),
    ingestLock: join(data, 'node', 'ingest.lock'),
    deliveryLock: join(data, 'node', 'delivery.lock'),
    databaseTimelines: join(data, 'database-timelines.json'),
    queries: join(data, 'queries'),
    buckets: join(data, 'buckets'),
    restoring: join(data, 'restoring'),
    restored: join(data, 'restored.json'),
  } as const
}

type DataPaths = ReturnType<typeof dataPaths>

/** Returns the configuration of another node on this machine, with a data directory of its own. */
export function withDataDirectory<Config extends { readonly paths: DataPaths }>(config: Config, dataDirectory: string): Config {
  const { buckets, nodeToken } = config.paths
  return Object.freeze({ ...config, dataDirectory, paths: { ...dataPaths(dataDirectory), buckets, nodeToken } })
}
