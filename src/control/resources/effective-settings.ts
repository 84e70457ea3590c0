import { copiesDefault, type MqttConfig, type OutputFormat, outputFormatsDefault } from '#model/endpoint.ts'
import type { KeptField } from '#model/kept-fields.ts'
import { segmentLimits } from '#model/limits.ts'
import type { EndpointSettings } from '#store/endpoints/endpoints.ts'

export type EffectiveSettings = {
  segment_bytes: number
  segment_max_age_seconds: number
  output_formats: OutputFormat[]
  mqtt_config: MqttConfig | null
  kept_headers: string[]
  kept_fields: KeptField[]
  copies: number
}

/** Fills in the defaults of this release for settings that the owner did not choose. */
export function effectiveSettings(settings: Pick<EndpointSettings, keyof EffectiveSettings>): EffectiveSettings {
  return {
    segment_bytes: settings.segment_bytes ?? segmentLimits.bytesDefault,
    segment_max_age_seconds: settings.segment_max_age_seconds ?? segmentLimits.maxAgeSecondsDefault,
    output_formats: [...(settings.output_formats ?? outputFormatsDefault)],
    mqtt_config: settings.mqtt_config,
    kept_headers: [...(settings.kept_headers ?? [])],
    kept_fields: [...(settings.kept_fields ?? [])],
    copies: settings.copies ?? copiesDefault,
  }
}
