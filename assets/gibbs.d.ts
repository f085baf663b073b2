interface Window {
  gibbsJem: any;
  gradio_config?: { root?: string; api_prefix?: string };
}
