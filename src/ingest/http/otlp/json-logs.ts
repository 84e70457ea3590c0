/**
 * Reads an ExportLogsServiceRequest in JSON (OTLP/JSON: Protobuf's JSON with names in lowerCamelCase, ids in hexadecimal, enums as numbers).
 *
 * Fields that it does not know are ignored, as OTLP requires. A field of the wrong type is an error that names it.
 */
import {
  type Attributes,
  doubleValue,
  groupText,
  integerValue,
  type LogRecord,
  newAttributes,
  newRecord,
  recordText,
} from './log-record.ts'
import { OtlpError, tooDeep, VALUE_DEPTH_MAX } from './otlp-error.ts'

type Json = Readonly<Record<string, unknown>>

const UINT64_MAX = 2n ** 64n - 1n
const doubleNames: ReadonlySet<unknown> = new Set(['NaN', 'Infinity', '-Infinity'])

/** Yields the text of each record. Throws OtlpError. */
export function* recordsInJson(text: string): Generator<string> {
  const request = objectAt(parse(text), 'the body')
  // Another document, such as a plain record, must not pass for a request without records.
  if (request['resourceLogs'] === undefined && Object.keys(request).length > 0) {
    throw new OtlpError('the body has no resourceLogs: it is not an ExportLogsServiceRequest in OTLP/JSON')
  }
  for (const [i, resourceLogs] of objectsAt(request['resourceLogs'], 'resourceLogs').entries()) {
    const path = `resourceLogs[${i}]`
    const resource = {
      attributes: attributesAt(
        objectAt(resourceLogs['resource'], `${path}.resource`)['attributes'],
        `${path}.resource.attributes`,
      ),
      schemaUrl: textAt(resourceLogs['schemaUrl'], `${path}.schemaUrl`),
    }
    for (const [j, scopeLogs] of objectsAt(resourceLogs['scopeLogs'], `${path}.scopeLogs`).entries()) {
      const at = `${path}.scopeLogs[${j}]`
      const scope = objectAt(scopeLogs['scope'], `${at}.scope`)
      const group = groupText(resource, {
        name: textAt(scope['name'], `${at}.scope.name`),
        version: textAt(scope['version'], `${at}.scope.version`),
        attributes: attributesAt(scope['attributes'], `${at}.scope.attributes`),
        schemaUrl: textAt(scopeLogs['schemaUrl'], `${at}.schemaUrl`),
      })
      for (const [k, record] of objectsAt(scopeLogs['logRecords'], `${at}.logRecords`).entries()) {
        yield recordText(recordOf(record, `${at}.logRecords[${k}]`), group)
      }
    }
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new OtlpError(`the body is not valid JSON: ${error instanceof Error ? error.message : error}`)
  }
}

function recordOf(json: Json, path: string): LogRecord {
  return {
    ...newRecord(),
    timeUnixNano: unsignedAt(json['timeUnixNano'], `${path}.timeUnixNano`),
    observedTimeUnixNano: unsignedAt(json['observedTimeUnixNano'], `${path}.observedTimeUnixNano`),
    severityNumber: numberAt(json['severityNumber'], `${path}.severityNumber`),
    severityText: textAt(json['severityText'], `${path}.severityText`),
    body: valueAt(json['body'], `${path}.body`, 0),
    attributes: attributesAt(json['attributes'], `${path}.attributes`),
    droppedAttributesCount: numberAt(json['droppedAttributesCount'], `${path}.droppedAttributesCount`),
    flags: numberAt(json['flags'], `${path}.flags`),
    traceId: hexAt(json['traceId'], `${path}.traceId`),
    spanId: hexAt(json['spanId'], `${path}.spanId`),
    eventName: textAt(json['eventName'], `${path}.eventName`),
  }
}

function attributesAt(json: unknown, path: string, depth = 0): Attributes {
  const attributes = newAttributes()
  for (const { key, value } of objectsAt(json, path)) attributes[textAt(key, `${path}: key`)] = valueAt(value, path, depth)
  return attributes
}

function valueAt(json: unknown, path: string, depth: number): unknown {
  if (depth > VALUE_DEPTH_MAX) throw tooDeep()
  const value = objectAt(json, path)
  if (isGiven(value['stringValue'])) return textAt(value['stringValue'], `${path}: stringValue`)
  if (isGiven(value['boolValue'])) return booleanAt(value['boolValue'], `${path}: boolValue`)
  if (isGiven(value['intValue'])) return integerValue(integerAt(value['intValue'], `${path}: intValue`))
  if (isGiven(value['doubleValue'])) return doubleAt(value['doubleValue'], `${path}: doubleValue`)
  if (isGiven(value['bytesValue'])) return textAt(value['bytesValue'], `${path}: bytesValue`)
  if (isGiven(value['arrayValue'])) {
    const list = objectAt(value['arrayValue'], `${path}: arrayValue`)['values']
    return objectsAt(list, `${path}: arrayValue.values`).map((item) => valueAt(item, path, depth + 1))
  }
  if (isGiven(value['kvlistValue'])) {
    const list = objectAt(value['kvlistValue'], `${path}: kvlistValue`)['values']
    return attributesAt(list, `${path}: kvlistValue.values`, depth + 1)
  }
  return null
}

/** Protobuf's JSON reads null like a field that is not there. */
function isGiven(json: unknown): boolean {
  return json !== undefined && json !== null
}

function objectAt(json: unknown, path: string): Json {
  if (!isGiven(json)) return {}
  if (typeof json === 'object' && !Array.isArray(json)) return json as Json
  throw invalid(path, 'an object')
}

function objectsAt(json: unknown, path: string): readonly Json[] {
  if (!isGiven(json)) return []
  if (!Array.isArray(json)) throw invalid(path, 'an array')
  const wrong = json.findIndex((item) => typeof item !== 'object' || item === null || Array.isArray(item))
  if (wrong !== -1) throw invalid(`${path}[${wrong}]`, 'an object')
  return json
}

function textAt(json: unknown, path: string): string {
  if (!isGiven(json)) return ''
  if (typeof json === 'string') return json
  throw invalid(path, 'a string')
}

function booleanAt(json: unknown, path: string): boolean {
  if (typeof json === 'boolean') return json
  throw invalid(path, 'true or false')
}

function numberAt(json: unknown, path: string): number {
  if (!isGiven(json)) return 0
  if (typeof json === 'number' && Number.isInteger(json)) return json
  throw invalid(path, 'an integer')
}

function integerAt(json: unknown, path: string): bigint {
  if (typeof json === 'number' && Number.isInteger(json)) return BigInt(json)
  if (typeof json === 'string' && /^-?\d{1,20}$/.test(json)) return BigInt(json)
  throw invalid(path, 'an integer, as a number or a string of digits')
}

function unsignedAt(json: unknown, path: string): bigint {
  if (!isGiven(json)) return 0n
  const value = integerAt(json, path)
  if (value >= 0n && value <= UINT64_MAX) return value
  throw invalid(path, 'nanoseconds since 1970, from 0 to 2^64 - 1')
}

function doubleAt(json: unknown, path: string): unknown {
  if (typeof json === 'number') return json
  if (doubleNames.has(json)) return json
  if (typeof json === 'string' && json.trim() !== '' && Number.isFinite(Number(json))) return doubleValue(Number(json))
  throw invalid(path, 'a number')
}

function hexAt(json: unknown, path: string): string {
  const text = textAt(json, path)
  if (/^[0-9a-f]*$/i.test(text)) return text.toLowerCase()
  throw invalid(path, 'an id in hexadecimal')
}

function invalid(path: string, expected: string): OtlpError {
  return new OtlpError(`${path} must be ${expected}`)
}
