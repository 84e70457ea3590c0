/**
 * Reads an ExportLogsServiceRequest in Protobuf (opentelemetry/proto/logs/v1/logs.proto).
 *
 * Owns: the numbers of the fields. Reads one record at a time, without an object for the whole request. Fields that it does not know are skipped.
 */
import { Buffer } from 'node:buffer'
import { BinaryReader, type WireType } from '@bufbuild/protobuf/wire'
import {
  type Attributes,
  doubleValue,
  groupText,
  integerValue,
  type LogRecord,
  newAttributes,
  newRecord,
  type Resource,
  recordText,
  type Scope,
} from './log-record.ts'
import { OtlpError, tooDeep, VALUE_DEPTH_MAX } from './otlp-error.ts'

/** A tag is a field number and a wire type. A known field of another type is skipped like an unknown one. */
const varint = (field: number) => field * 8
const fixed64 = (field: number) => field * 8 + 1
const delimited = (field: number) => field * 8 + 2
const fixed32 = (field: number) => field * 8 + 5

const request = { resourceLogs: delimited(1) }
const resourceLogs = { resource: delimited(1), scopeLogs: delimited(2), schemaUrl: delimited(3) }
const scopeLogs = { scope: delimited(1), logRecords: delimited(2), schemaUrl: delimited(3) }
const resourceFields = { attributes: delimited(1) }
const scopeFields = { name: delimited(1), version: delimited(2), attributes: delimited(3) }
const recordFields = {
  timeUnixNano: fixed64(1),
  severityNumber: varint(2),
  severityText: delimited(3),
  body: delimited(5),
  attributes: delimited(6),
  droppedAttributesCount: varint(7),
  flags: fixed32(8),
  traceId: delimited(9),
  spanId: delimited(10),
  observedTimeUnixNano: fixed64(11),
  eventName: delimited(12),
}
const keyValue = { key: delimited(1), value: delimited(2) }
const anyValue = {
  string: delimited(1),
  bool: varint(2),
  int: varint(3),
  double: fixed64(4),
  array: delimited(5),
  keyValueList: delimited(6),
  bytes: delimited(7),
}
/** Field 1 of ArrayValue and KeyValueList. */
const values = delimited(1)

/** Yields the text of each record. Throws OtlpError. */
export function* recordsInProtobuf(body: Uint8Array): Generator<string> {
  const reader = new BinaryReader(body)
  try {
    for (const end of messagesIn(reader, reader.len, request.resourceLogs)) yield* recordsOfResource(reader, end)
  } catch (error) {
    // The reader throws both, for bytes that are not Protobuf. Whatever else fails here is a bug.
    if (error instanceof RangeError || (error instanceof Error && error.constructor === Error)) {
      throw new OtlpError(`the body is not valid Protobuf: ${error.message} (at byte ${reader.pos} of ${reader.len})`)
    }
    throw error
  }
}

/** Fields may come in any order, so the resource is read before the records, which takes a second look at the message. */
function* recordsOfResource(reader: BinaryReader, end: number): Generator<string> {
  const start = reader.pos
  const resource: Resource = { attributes: newAttributes(), schemaUrl: '' }
  readFields(reader, end, (tag) => {
    if (tag === resourceLogs.resource) readResource(reader, endOf(reader), resource.attributes)
    else if (tag === resourceLogs.schemaUrl) resource.schemaUrl = reader.string()
    else return false
    return true
  })
  reader.pos = start
  for (const scopeEnd of messagesIn(reader, end, resourceLogs.scopeLogs)) yield* recordsOfScope(reader, scopeEnd, resource)
}

function* recordsOfScope(reader: BinaryReader, end: number, resource: Resource): Generator<string> {
  const start = reader.pos
  const scope: Scope = { name: '', version: '', attributes: newAttributes(), schemaUrl: '' }
  readFields(reader, end, (tag) => {
    if (tag === scopeLogs.scope) readScope(reader, endOf(reader), scope)
    else if (tag === scopeLogs.schemaUrl) scope.schemaUrl = reader.string()
    else return false
    return true
  })
  reader.pos = start
  const group = groupText(resource, scope)
  for (const recordEnd of messagesIn(reader, end, scopeLogs.logRecords)) yield recordText(readRecord(reader, recordEnd), group)
}

function readResource(reader: BinaryReader, end: number, attributes: Attributes): void {
  readFields(reader, end, (tag) => tag === resourceFields.attributes && readKeyValue(reader, attributes, 0))
}

function readScope(reader: BinaryReader, end: number, scope: Scope): void {
  readFields(reader, end, (tag) => {
    if (tag === scopeFields.name) scope.name = reader.string()
    else if (tag === scopeFields.version) scope.version = reader.string()
    else return tag === scopeFields.attributes && readKeyValue(reader, scope.attributes, 0)
    return true
  })
}

function readRecord(reader: BinaryReader, end: number): LogRecord {
  const record = newRecord()
  readFields(reader, end, (tag) => {
    switch (tag) {
      case recordFields.timeUnixNano:
        record.timeUnixNano = BigInt(reader.fixed64())
        break
      case recordFields.severityNumber:
        record.severityNumber = reader.int32()
        break
      case recordFields.severityText:
        record.severityText = reader.string()
        break
      case recordFields.body:
        record.body = readValue(reader, 0)
        break
      case recordFields.attributes:
        return readKeyValue(reader, record.attributes, 0)
      case recordFields.droppedAttributesCount:
        record.droppedAttributesCount = reader.uint32()
        break
      case recordFields.flags:
        record.flags = reader.fixed32()
        break
      case recordFields.traceId:
        record.traceId = hexOf(reader.bytes())
        break
      case recordFields.spanId:
        record.spanId = hexOf(reader.bytes())
        break
      case recordFields.observedTimeUnixNano:
        record.observedTimeUnixNano = BigInt(reader.fixed64())
        break
      case recordFields.eventName:
        record.eventName = reader.string()
        break
      default:
        return false
    }
    return true
  })
  return record
}

/** Returns true: it was a field that the caller knows. */
function readKeyValue(reader: BinaryReader, into: Attributes, depth: number): true {
  let key = ''
  let value: unknown = null
  readFields(reader, endOf(reader), (tag) => {
    if (tag === keyValue.key) key = reader.string()
    else if (tag === keyValue.value) value = readValue(reader, depth)
    else return false
    return true
  })
  into[key] = value
  return true
}

function readValue(reader: BinaryReader, depth: number): unknown {
  if (depth > VALUE_DEPTH_MAX) throw tooDeep()
  let value: unknown = null
  readFields(reader, endOf(reader), (tag) => {
    switch (tag) {
      case anyValue.string:
        value = reader.string()
        break
      case anyValue.bool:
        value = reader.bool()
        break
      case anyValue.int:
        value = integerValue(BigInt(reader.int64()))
        break
      case anyValue.double:
        value = doubleValue(reader.double())
        break
      case anyValue.array:
        value = readList(reader, depth + 1)
        break
      case anyValue.keyValueList:
        value = readMap(reader, depth + 1)
        break
      case anyValue.bytes:
        value = bufferOf(reader.bytes()).toString('base64')
        break
      default:
        return false
    }
    return true
  })
  return value
}

function readList(reader: BinaryReader, depth: number): unknown[] {
  const list: unknown[] = []
  readFields(reader, endOf(reader), (tag) => tag === values && list.push(readValue(reader, depth)) > 0)
  return list
}

function readMap(reader: BinaryReader, depth: number): Attributes {
  const map = newAttributes()
  readFields(reader, endOf(reader), (tag) => tag === values && readKeyValue(reader, map, depth))
  return map
}

/** Yields the end of each message with this tag, with the reader at its start, and skips all other fields. */
function* messagesIn(reader: BinaryReader, end: number, wanted: number): Generator<number> {
  while (reader.pos < end) {
    const tag = reader.uint32()
    if (tag === wanted) yield endOf(reader)
    else skip(reader, tag)
  }
  requireEnd(reader, end)
}

/** Reads a message up to its end. `read` returns false for a field that it does not know, and leaves the reader there. */
function readFields(reader: BinaryReader, end: number, read: (tag: number) => boolean): void {
  while (reader.pos < end) {
    const tag = reader.uint32()
    if (!read(tag)) skip(reader, tag)
  }
  requireEnd(reader, end)
}

function requireEnd(reader: BinaryReader, end: number): void {
  if (reader.pos !== end) throw new OtlpError('the body is not valid Protobuf: a field is longer than its message')
}

/** Reads the size of a message. */
function endOf(reader: BinaryReader): number {
  const bytes = reader.uint32()
  const end = reader.pos + bytes
  if (end > reader.len) throw new RangeError('premature EOF')
  return end
}

function skip(reader: BinaryReader, tag: number): void {
  if (tag < 8) throw new OtlpError('the body is not valid Protobuf: field number 0')
  reader.skip((tag & 7) as WireType, tag >>> 3)
}

function hexOf(bytes: Uint8Array): string {
  return bufferOf(bytes).toString('hex')
}

function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}
