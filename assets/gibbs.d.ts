interface Window {
  gibbsJem: any;
  gradio_config?: { root?: string; api_prefix?: string; dependencies?: { id: number; targets: [number, string][] }[] };
}
