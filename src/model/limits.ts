/**
 * Bounds that clients can observe: in requests, responses and documented behaviour. Bounds that an operator may change are in `config/config.ts`,
 * and each room keeps its tuning beside the code that it tunes.
 */

import { KiB, MiB } from '#lib/bytes.ts'
import { dayMs } from '#lib/time-units.ts'

/** Share of an account where accounts compete for a node: in proportion to the weights of the others. */
export const weightLimits = { min: 1, max: 1_000, default: 1 } as const

/** Quotas of an account: what an operator may set, and what applies if they set nothing, which a single user never reaches. */
export const quotaLimits = {
  endpoints: { min: 0, max: 1_000_000, default: 1_000 },
  views: { min: 0, max: 1_000_000, default: 1_000 },
  view_versions: { min: 0, max: 1_000_000, default: 10_000 },
  api_keys: { min: 0, max: 1_000_000, default: 10_000 },
  bytes_per_day: { min: 0, max: 1e15, default: 1e14 },
  records_per_second: { min: 1, max: 1_000_000_000, default: 10_000_000 },
} as const

export const keyLimits = {
  /** Endpoints that a key may be limited to: each access token of the key names them, and has to fit into a header. */
  endpointsMax: 50,
  /** Origins that a public key may send from. */
  originsMax: 20,
  originBytesMax: 300,
  /** Keys in one report of a node about their use. It reports the others in the next ones. */
  reportedMax: 2_000,
} as const

/** Secrets of an account, which views name: how many, the bytes of one, and the views that a list names for each. */
export const secretLimits = {
  perAccountMax: 100,
  nameCharsMax: 64,
  bytesMin: 16,
  bytesMax: 1_024,
  /** Size of one that Inlet makes. */
  bytesMade: 32,
  usedByMax: 20,
} as const

export const pageLimits = { min: 1, max: 200, default: 50 } as const

export const segmentLimits = {
  /** Decimal units, as in the specification: 8 MB and 1 GB. */
  bytesMin: 8_000_000,
  bytesMax: 1_000_000_000,
  bytesDefault: 64 * MiB,
  maxAgeSecondsMin: 1,
  maxAgeSecondsMax: 3600,
  maxAgeSecondsDefault: 60,
} as const

export const mqttLimits = {
  /** Bounds of an endpoint's `mqtt_config`. */
  maxConnections: { min: 1, max: 100_000, default: 1_000 },
  keepaliveMaxSeconds: { min: 10, max: 3_600, default: 300 },
  qosMax: { min: 0, max: 1, default: 1 },
  /** Size of a CONNECT packet, including its will. */
  connectBytesMax: 16 * KiB,
  clientIdBytesMax: 512,
  usernameBytesMax: 512,
  topicBytesMax: 1_024,
  /** Levels are separated by slashes. */
  topicLevelsMax: 32,
  topicAliasMax: 16,
  /** All properties of a message. */
  propertiesBytesMax: 16 * KiB,
  /** Payload and properties of a will, which is in memory as long as its connection. */
  willBytesMax: 8 * KiB,
  /** A packet other than PUBLISH, e.g. a SUBSCRIBE with many filters. */
  controlBytesMax: 64 * KiB,
  /** Messages of a connection that are not yet durable: the receive maximum of MQTT 5. */
  inFlightMessagesMax: 2_048,
} as const

/** The JSON of a request: its values, their nesting, the fields of one object, and the different names of all fields. A definition
 * of the maximum size has about 1 500 values. */
export const bodyLimits = { partsMax: 10_000, nestingMax: 32, fieldsMax: 5_000, namesMax: 25_000 } as const

/** Characters of a text in the report of a node: far more than a name, a code, or a path that is cut to its length. */
export const reportedTextMax = 1_000
/** A number in the report of a node, in bytes 281 TB: far more than a disk has, and sums of many thousand fit into a database. */
export const reportedCountMax = 2 ** 48

/** Bounds on the commit of one segment: views, and views with quality. Its files are bounded by the fields of an object. */
export const commitLimits = { viewsMax: 2_000, measuredViewsMax: 150, keyCharsMax: 8_192 } as const

export const idempotencyLimits = {
  keyBytesMax: 255,
  /** A request that is repeated within this time is stored once. */
  rememberedMs: dayMs,
} as const

export const recordLimits = {
  /** One NDJSON line without its line break, or one MQTT payload. */
  bytesMax: MiB,
} as const

export const definitionLimits = {
  columnsMax: 100,
  columnNameBytesMax: 255,
  filtersMax: 100,
  conditionCharsMax: 4_096,
  pathCharsMax: 1_024,
  /** Characters of a format for times. */
  formatCharsMax: 128,
  /** For a definition sent as text: its length, words and punctuation marks, indentation, nesting, and aliases. */
  textCharsMax: 256 * KiB,
  textTokensMax: 100_000,
  textIndentMax: 256,
  textNestingMax: 16,
  textAliasesMax: 200,
  /** Nesting of a filter's expression, as DuckDB's parser reports it. */
  conditionDepthMax: 64,
  /** Fields of the envelope that expressions of a view name. */
  fieldsMax: 20,
  /** Rows that a view may make of one record, and elements of an outer array. */
  expandedRowsMax: 10_000,
  /**
   * Text that a view may repeat in the rows of one record: so many times the size of the record or of the outer element that it reads, and so
   * many bytes more.
   */
  repeatedTextFactor: 64,
  repeatedTextBytes: 64 * KiB,
  /** Computed columns that need each other: how many, one above the other. */
  computedLevelsMax: 16,
  /** Size of a regular expression with its repetitions written out. */
  patternSizeMax: 5_000,
  /** Steps that all patterns of a view may take on one record: bytes of text times size. A step is up to 20 ns. */
  patternStepsMax: 1_000_000_000,
  /** A view that compiles is fast enough for records of this size. */
  patternRecordBytesMin: 64 * KiB,
  /** Text that the calls in all expressions return for one record: a multiple of its values, and further bytes. */
  textValuesMax: 100,
  textBytesMax: 32 * KiB,
  /** Columns of `partition_by` and of `sort_by`. */
  partitionColumnsMax: 3,
  sortColumnsMax: 4,
  /** Columns of `dedupe_by`. */
  keyColumnsMax: 4,
  /** `dedupe_within`. */
  windowSeconds: { min: 60, max: 7 * 86_400 },
  /** Parts of all expressions that read text other than a constant as a time. */
  timeCastsMax: 32,
  /** Time for DuckDB to parse or check one condition. */
  compileTimeoutMs: 5_000,
  /** Requests of one account that create, change or publish views at once. */
  perAccountMax: 16,
} as const

export const previewLimits = {
  samplesMax: 100,
  sampleBytesMax: 64 * KiB,
  timeoutMs: 10_000,
  /** All samples of the maximum size fit, with every quote and line break escaped. */
  bodyBytesMax: 16 * MiB,
  /** Values of the rows in the result, as text. All values that samples can contain fit, also in lists of short numbers. */
  resultBytesMax: 16 * MiB,
  /** Rows of a view that expands an array, and how many elements are listed with what became of them. */
  rowsMax: 20_000,
  itemsListedMax: 1_000,
  /** Previews of one account that run or wait. */
  perAccountMax: 4,
} as const

/** A comparison of two definitions over stored records: what is read of the newest raw Parquet, and what the response shows. */
export const comparisonLimits = {
  windowMs: dayMs,
  endpointsMax: 10,
  filesMax: 50,
  bytesMax: 64 * MiB,
  recordsMax: 200_000,
  /** Rows of both definitions together, with duplicates. */
  rowsMax: 1_000_000,
  /** No further records are read after this time. The rest of the time of a preview is for those in work. */
  readingMs: 6_000,
  /** Samples of each kind of difference; characters of a record and of a value in them. */
  samplesMax: 5,
  recordCharsMax: 2_000,
  valueCharsMax: 500,
  /** Comparisons of one account that run or wait. */
  perAccountMax: 2,
} as const

/** Tests of views, which run on the machine of whoever wrote them, or in CI on files of a pull request. */
export const viewTestLimits = {
  casesMax: 1_000,
  recordsMax: 1_000,
  rowsMax: 10_000,
  nameCharsMax: 1_024,
  /** The records of one view together, as text. */
  bytesMax: 8 * MiB,
  /** How long the records of one view may take. */
  timeoutMs: 10_000,
} as const

/** Delivered records, and dead letters, that are shown as samples: how many, how much of a payload, and what is read for them. */
export const recordSampleLimits = {
  max: 100,
  default: 20,
  charsMax: 64 * KiB,
  commitsMax: 50,
  filesMax: 8,
  /** Files that are searched for a reason, and whose reasons are counted: one reason may be rare. */
  searchedFilesMax: 50,
  reasonsMax: 100,
  bytesMax: 64 * MiB,
} as const

/** A query over delivered files. It is for looking: what needs more belongs in a warehouse. */
export const queryLimits = {
  sqlCharsMax: 16 * KiB,
  /** Rows of a result, and its size as JSON. */
  rowsDefault: 1_000,
  rowsMax: 10_000,
  resultBytesMax: 8 * MiB,
  columnsMax: 1_000,
  /** Tables that a statement names, and the newest files of all of them together that are read. */
  tablesMax: 8,
  bytesMax: 256 * MiB,
  filesMax: 500,
  /** Time to fetch the files, and to run the statement. */
  fetchTimeoutMs: 20_000,
  timeoutMs: 15_000,
  /** Memory of the statement. Nothing is spilled to disk. */
  memoryBytes: 512 * MiB,
  /** Queries of one account that run or wait. */
  perAccountMax: 4,
} as const

/** Column quality, and paths that no column reads. */
export const qualityLimits = {
  /** Records of a segment that are sampled for paths. */
  samplesMax: 200,
  /** Paths of a view and a segment; paths of a time bucket and of a response; length of one path. */
  pathsMax: 50,
  pathsKeptMax: 100,
  pathCharsMax: 200,
} as const

export const dlqLimits = { filesMax: 1_000 } as const

/** How long a link to a file in a bucket is valid. */
export const downloadLimits = { seconds: 3_600 } as const

/** Definitions that run on an endpoint only to be counted. */
export const shadowLimits = { perEndpointMax: 2 } as const

export const bindingLimits = {
  /** Detached views of an endpoint that its nodes may still need for segments that were sealed before. */
  unsettledMax: 100,
} as const

/** Backfills and re-drives. */
export const jobLimits = {
  /** Unfinished jobs of an account. */
  activePerAccountMax: 20,
  segmentsMax: 100_000,
  /** Reasons that a job lists, and the length of one. */
  reasonsMax: 20,
  reasonCharsMax: 500,
  /** Units that a node may lease, and name, in one request. */
  leasesPerRequestMax: 8,
  leasesPerNodeMax: 64,
  /** How long finished jobs are kept. */
  keptMs: 90 * dayMs,
} as const

/** The audit trail of an account. */
export const auditLimits = {
  /** Beyond these the oldest events go. Failed ones are counted apart, so that they cannot push out what was changed. */
  eventsMax: { succeeded: 100_000, failed: 10_000 },
  /** Failed calls that each control process records. Further ones are only counted. */
  failuresPerMinute: 10,
  failuresBurst: 100,
} as const

/** Limits of S3: bytes of a key in UTF-8. The longest key below a prefix leaves it the rest. */
export const objectKeyLimits = {
  ...{ keyBytesMax: 1_024, prefixBytesMax: 600, fileNameBytesMax: 255 },
  /** All folders of a partition, with a slash before each. */
  partitionBytesMax: 180,
} as const

/** Files of a segment for the partitions of one view, and of all views: a commit lists them. */
export const partitionLimits = { perView: 64, perSegment: 1_000 } as const

export const tokenLimits = {
  ...{ ttlSecondsMin: 1, ttlSecondsMax: 3_600, ttlSecondsDefault: 900 },
  /** A token whose key was revoked lives no longer than this, whatever its `exp`. */
  afterRevocationSecondsMax: 900,
  /** How long a revoked key is remembered: twice the longest life of a token, because clocks differ. */
  revokedKeysKeptSeconds: 7_200,
} as const

export const nodeLimits = {
  /** A process of a node without a heartbeat for this long is not healthy. */
  healthySeconds: 7,
  /** Logs that the removal of a node lists. */
  removedLogsMax: 1_000,
  /** Addresses of each version that a node may report. */
  addressesMax: 64,
} as const

/** Join tokens: how long they are valid, how many nodes may join with one, and how long they are listed after they expired. */
export const joinTokenLimits = {
  ttlSecondsMin: 60,
  ttlSecondsMax: 365 * 86_400,
  usesMax: 100_000,
  keptMs: 90 * dayMs,
} as const

/** Buckets, or parts of them, that an account may use. Nodes get them with each destination. */
export const allowedBucketsMax = 50

/** A destination can be validated once in this time. */
export const validationIntervalSeconds = 30

/** Length of the time buckets of view counters. */
export const metricsBucketSeconds = 300

export type SeriesStep = '10s' | '1m' | '5m' | '1h'

/** Series of endpoints and views. */
export const seriesLimits = {
  /** How long buckets are kept, by their length. */
  keptMs: { '10s': 3_600_000, '1m': 2 * dayMs, '5m': 30 * dayMs, '1h': 30 * dayMs },
  windowMsDefault: 3_600_000,
  /** Buckets of a response for which no length is asked: as many as a chart shows. */
  bucketsPreferred: 720,
  /** Versions of a view in one response. */
  versionsMax: 20,
} as const

/** HTTP headers that an endpoint keeps with its records. */
export const keptHeaderLimits = {
  namesMax: 16,
  nameCharsMax: 64,
  /** Names and values of one request: each of its records has them. */
  bytesMax: 4 * KiB,
} as const

/** An HTTP request to ingest. `config/config.ts` has the bounds that an operator may change. */
export const requestLimits = {
  headerBytesMax: 16 * KiB,
  headersMax: 100,
  /** Until the first authenticated request: from the start of the connection, or from a response, to the end of the next request head. */
  unauthenticatedMs: 5_000,
  /** After it: from the first byte of a request to the end of its head. */
  headersTimeoutMs: 15_000,
  /** How long an authenticated connection may stay idle between two requests. */
  idleConnectionMs: 75_000,
  /** A client must send this many bytes of a body in each window. */
  rateWindowMs: 10_000,
  rateWindowBytesMin: 8 * KiB,
  /** The chunks of a chunked body (RFC 9112 §7.1) must have this size on average, once there are more than so many. */
  smallChunksMax: 10_000,
  chunkBytesMin: 16,
} as const

/** Export requests of OpenTelemetry. */
export const otlpLimits = {
  recordsMax: 100_000,
  /** Each record repeats its resource and scope: how many times the bytes of a request its records may have. */
  growthMax: 4,
} as const

export const signInLimits = {
  /** A session ends after this time without a visit. */
  sessionSeconds: 14 * 24 * 3600,
  sessionExtendedAfterSeconds: 3600,
  passwordChars: { min: 10, max: 128 },
  linkChars: 64,
  /** From whatever addresses: whoever guesses the password of one person may have many. */
  triesOfEmailPerMinute: 10,
  /** Lifetime of the link that a first start prints, and of links from the command line. */
  linkHours: 24,
  invitationDays: 7,
  peopleOfAccountMax: 500,
  invitationsOfAccountMax: 200,
} as const

/** Compactions: one new file, and what may be planned at once. */
export const compactionLimits = {
  /** Bytes of the sources of one file, and how many they are. */
  bytesMax: 256_000_000,
  sourcesMax: 10_000,
  /** A source of this size is large enough. */
  bytesEnough: 128_000_000,
  /** Commits that one job covers: the oldest that have files to merge. */
  commitsMax: 20_000,
  /** How long after its end a period is compacted: most late segments have been delivered by then. */
  marginMs: { hour: 600_000, day: 3_600_000 },
  /** How far an automatic compaction looks back, for files that were delivered or backfilled late. */
  lookBackMs: { hour: dayMs, day: 7 * dayMs },
  /** Unfinished compactions of an account above which none is started automatically. */
  automaticPerAccountMax: 4,
  exceptViewsMax: 100,
  /** How long after a compaction the files that it merged may be removed. */
  removeAfterHours: { min: 1, max: 8_760 },
  /** Compactions whose files one job removes, and when a removal that failed is tried again by itself. */
  removalsPerJobMax: 100,
  removalRetryMs: dayMs,
  /** A merged file that is read for one record. */
  readBytesMax: 300_000_000,
} as const

/** Segments in one question of a node whether they are delivered. */
export const deliveredLookupMax = 100

/** How long a request waits for the commit of its records: a segment is sealed a minute after its first one, if nobody says otherwise. */
export const commitWaitLimits = { secondsDefault: 120, secondsMax: 300 } as const
